"""Who uses an object: the modules that can name it are parsed, and each use is followed."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from kunlun_adapt.upstream import syntax
from kunlun_adapt.upstream.found import Found
from kunlun_adapt.upstream.index.receivers import Receiver
from kunlun_adapt.upstream.index.records import Reference
from kunlun_adapt.upstream.index.uses import Use, find_uses
from kunlun_adapt.upstream.lookup import ROOT
from kunlun_adapt.upstream.module import absolute_in
from kunlun_adapt.upstream.symbols import Location, Symbol

if TYPE_CHECKING:
    from kunlun_adapt.upstream.index.index import Index

#: Methods of Python's own types: a call of one of these says nothing about a class of the release.
_BUILTIN = frozenset(
    name
    for kind in (
        dict,
        list,
        set,
        frozenset,
        str,
        bytes,
        tuple,
        int,
        float,
        object,
        type,
        BaseException,
    )
    for name in dir(kind)
)


class References:
    """Finds uses. Each module is parsed once for all names that are of interest by then."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._names: set[str] = set()
        self._uses: dict[str, tuple[int, tuple[Use, ...]]] = {}
        self._found: dict[str, tuple[Reference, ...]] = {}
        self._calls: dict[tuple[str, str], tuple[Reference, ...]] = {}
        self._families: dict[str, frozenset[str]] = {}

    def expect(self, paths: Iterable[str]) -> None:
        """Say which objects will be asked for, so that no module is parsed twice."""
        for path in paths:
            self._names |= self._names_of(path)

    def references(self, path: str) -> tuple[Reference, ...]:
        """Every use of the object that a path leads to."""
        symbol = self._index.resolver.resolve(path)
        if not isinstance(symbol, Symbol) or symbol.kind in ("module", "external"):
            return ()
        key = symbol.resolved
        if key not in self._found:
            names = self._names_of(key)
            self._names |= names
            found: dict[Reference, None] = {}
            for module in self._modules_naming(symbol):
                for use in self._module_uses(module, names):
                    text = self._meant(module, use, names, key)
                    if text is not None:
                        made = _reference(module, self._file(module), use)
                        if text != use.text:
                            made = replace(made, kind="other", call=None)
                        found[made] = None
            self._found[key] = tuple(found)
        return self._found[key]

    def method_calls(self, class_path: str, name: str) -> tuple[Reference, ...]:
        """The calls `x.name(…)` that may reach a class's method."""
        symbol = self._index.resolver.resolve(class_path)
        if not isinstance(symbol, Symbol):
            return ()
        key = (symbol.resolved, name)
        if key not in self._calls:
            self._names.add(name)
            self._calls[key] = tuple(dict.fromkeys(self._method_calls(symbol, name)))
        return self._calls[key]

    def _names_of(self, path: str) -> set[str]:
        """The names under which an object, and the class around it, may stand in a text."""
        symbol = self._index.resolver.resolve(path)
        if not isinstance(symbol, Symbol):
            return set()
        names = {symbol.name, symbol.qualname.rpartition(".")[2]}
        if "." not in symbol.qualname:
            names |= {known.rpartition(".")[2] for known in self._index.known_as(path)}
            names |= {item.name for item in self._index.importers(path)}
        return names - {""}

    def _modules_naming(self, symbol: Symbol) -> tuple[str, ...]:
        """The modules that can name an object: its own, its importers, those that import these."""
        owner = f"{symbol.module}.{symbol.qualname.partition('.')[0]}"
        exposing = [known.rpartition(".")[0] for known in self._index.known_as(owner)]
        modules = [symbol.module, *exposing]
        modules += [item.module for item in self._index.importers(owner)]
        for module in dict.fromkeys(exposing):
            modules += [item.module for item in self._index.importers(module)]
        modules += self._index.importing(ROOT)
        return tuple(dict.fromkeys(modules))

    def _module_uses(self, module: str, names: Iterable[str]) -> tuple[Use, ...]:
        """The uses of interest in a module; empty, unparsed, where none of the names is in it."""
        held = self._uses.get(module)
        if held is not None and held[0] == len(self._names):
            return held[1]
        release = self._index.resolver.release
        source = release.read(self._file(module)) or b""
        if not any(name.encode() in source for name in names):
            return ()
        try:
            tree = syntax.parse_module(source, module)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return ()
        is_package = self._file(module).endswith("/__init__.py")
        lines = _lines_with(source, self._names)
        uses = find_uses(tree, absolute_in(module, is_package), self._names, lines)
        self._uses[module] = (len(self._names), uses)
        return uses

    def _file(self, module: str) -> str:
        return self._index.file(module) or ""

    def _meant(self, module: str, use: Use, names: set[str], resolved: str) -> str | None:
        """The part of a use's text, from its start, that is the object; None where none is.

        What uses a member of a class (`Class.make()`) uses the class.
        """
        if not use.text or (use.local and not use.imported):
            return None
        parts = use.text.split(".")
        for end in range(len(parts), 0, -1):
            if parts[end - 1] not in names:
                continue
            text = ".".join(parts[:end])
            if use.imported:
                gone = len(parts) - end
                paths = (path.rsplit(".", gone)[0] if gone else path for path in use.imported)
                if any(self._index.resolver.definition(path) == resolved for path in paths):
                    return text
                continue
            found = self._index.lookup.named(module, list(use.owners), text)
            if isinstance(found, Found) and any(
                item.dotted == resolved for item in (found, *found.others)
            ):
                return text
        return None

    def _method_calls(self, klass: Symbol, name: str) -> Iterator[Reference]:
        family = self._family(klass.resolved)
        definers = {
            item.path.rpartition(".")[0]
            for item in self._index.definitions(name)
            if "." in item.qualname
        }
        exclusive = definers <= family and name not in _BUILTIN
        modules = self._index.calling(name)
        if not exclusive:
            near = {path.rpartition(".")[0] for path in family}
            for path in sorted(family):
                near |= {item.module for item in self._index.importers(path)}
                near.add(self._module_of(path))
            modules = tuple(module for module in modules if module in near)
        for module in modules:
            for use in self._module_uses(module, (name,)):
                if use.leaf != name or use.call is None:
                    continue
                how = self._reaches(module, use, family, exclusive)
                if how is not None:
                    found = _reference(module, self._file(module), use)
                    yield replace(found, through_class=how == "class")

    def _reaches(
        self, module: str, use: Use, family: frozenset[str], exclusive: bool
    ) -> Literal["instance", "class"] | None:
        """What of the family a call is made on, None where it goes elsewhere."""
        anything: Literal["instance"] | None = "instance" if exclusive else None
        if use.receiver is not None:
            known = self._class_of(module, use.receiver)
            return "instance" if known in family else anything if not known else None
        if not use.text:
            return anything
        if "." not in use.text:
            return None
        if use.local and not use.imported:
            return anything
        if use.imported:
            owner = self._index.resolver.definition(use.imported[0].rpartition(".")[0])
            named, path = owner is not None, owner or ""
        else:
            found = self._index.lookup.named(module, list(use.owners), use.text.rpartition(".")[0])
            named = isinstance(found, Found)
            path = found.dotted if isinstance(found, Found) else ""
            if isinstance(found, Found) and found.binding and found.binding.kind == "assignment":
                # A module-level object: what class it is of, the text may tell.
                made = found.binding.call or ""
                if made and found.table is not None:
                    klass = self._index.lookup.named(found.module, [], made)
                    if isinstance(klass, Found) and klass.is_class:
                        return "instance" if klass.dotted in family else None
                return anything
        if named:
            return "class" if path in family else None
        return anything

    def _class_of(self, module: str, receiver: Receiver) -> str:
        if receiver.how in ("self", "super"):
            return f"{module}.{receiver.text}"
        found = self._index.lookup.named(module, [], receiver.text)
        return found.dotted if isinstance(found, Found) else ""

    def _family(self, resolved: str) -> frozenset[str]:
        """A class, the classes below it, and those above it, whose `self` may be one of it."""
        if resolved not in self._families:
            lookup = self._index.lookup
            found = lookup.walk(resolved)
            classes = lookup.mro(found)[0] if isinstance(found, Found) else ()
            above = [item.dotted for item in classes]
            below = [item.path for item in self._index.subclasses(resolved)]
            self._families[resolved] = frozenset([resolved, *above, *below])
        return self._families[resolved]

    def _module_of(self, path: str) -> str:
        symbol = self._index.resolver.resolve(path)
        return symbol.module if isinstance(symbol, Symbol) else ""


def _reference(module: str, file: str, use: Use) -> Reference:
    return Reference(
        kind=use.kind,
        module=module,
        scope=use.scope,
        location=Location(file, use.line),
        call=use.call,
        on_import=use.on_import,
        guard=use.guard,
        within=use.within,
    )


_WORD = re.compile(rb"[^\W\d]\w*")


def _lines_with(source: bytes, names: Collection[str]) -> list[int]:
    """The numbers of the lines on which one of the names stands."""
    wanted = {name.encode() for name in names}
    return [
        number
        for number, line in enumerate(source.split(b"\n"), start=1)
        if not wanted.isdisjoint(_WORD.findall(line))
    ]

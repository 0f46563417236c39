"""The face of the index: who defines, imports and derives from what in a release."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, lru_cache, partial
from typing import Any

from kunlun_adapt.upstream.found import Found
from kunlun_adapt.upstream.guards import holds
from kunlun_adapt.upstream.index.cache import Stored
from kunlun_adapt.upstream.index.records import Definition, Import, Reference
from kunlun_adapt.upstream.index.references import References
from kunlun_adapt.upstream.index.rows import (
    aliases_in,
    definitions_in,
    imports_in,
    loads_in,
    table_of,
    wildcards_in,
)
from kunlun_adapt.upstream.lookup import ROOT, Lookup
from kunlun_adapt.upstream.module import ModuleTable, decoded
from kunlun_adapt.upstream.resolve import Resolver
from kunlun_adapt.upstream.symbols import Location, Symbol

_ROWS = 512
"""Decoded rows that are kept; a release has thousands."""


class Index:
    """All symbols of a release; what is asked for is decoded on demand."""

    def __init__(self, resolver: Resolver, stored: Stored) -> None:
        self.resolver = resolver
        self._stored = stored
        self._numbers = {module: number for number, (module, _) in enumerate(stored.modules)}
        self._row: Callable[[int], list[Any] | None] = lru_cache(_ROWS)(stored.row)
        self._table = lru_cache(None)(stored.table)
        self._importers: dict[str, tuple[Import, ...]] = {}
        self._subclasses: dict[str, tuple[Definition, ...]] = {}
        self._references = References(self)

    @property
    def digest(self) -> str:
        """The hash of all that the index was made from."""
        return self._stored.digest

    @property
    def modules(self) -> tuple[str, ...]:
        """All modules of the release, unparsable ones included."""
        return tuple(module for module, _ in self._stored.modules)

    def table(self, module: str) -> ModuleTable | None:
        """The table of a module; its text is read when somebody asks for it."""
        number = self._numbers.get(module)
        row = None if number is None else self._row(number)
        return None if row is None else table_of(row, partial(self._text, row[1]))

    def _text(self, file: str) -> str:
        return decoded(self.resolver.release.read(file) or b"")

    def names(self) -> tuple[str, ...]:
        """The last names of all definitions, each once."""
        return tuple(self._table("defined"))

    def definitions(self, name: str) -> tuple[Definition, ...]:
        """Every definition whose last name this is, in file order."""
        return tuple(
            item
            for row in self._rows("defined", name)
            for item in definitions_in(row)
            if item.name == name
        )

    def by_fingerprint(self, fingerprint: str) -> tuple[Definition, ...]:
        """Every definition whose body has this hash."""
        try:
            key = bytes.fromhex(fingerprint)
        except ValueError:
            return ()
        return tuple(
            item
            for row in self._rows("prints", key)
            for item in definitions_in(row)
            if item.fingerprint == fingerprint
        )

    def defined_in(self, module: str) -> tuple[Definition, ...]:
        """Every definition of a module and its classes."""
        number = self._numbers.get(module)
        row = None if number is None else self._row(number)
        return () if row is None else tuple(definitions_in(row))

    def importers(self, path: str) -> tuple[Import, ...]:
        """Every import of the object that a path leads to, under any of its paths.

        A wildcard import counts where the importing module has the name by it.
        """
        symbol = self.resolver.resolve(path)
        if not isinstance(symbol, Symbol) or "." in symbol.qualname:
            return ()  # nobody imports a member of a class
        key = symbol.resolved
        if key not in self._importers:
            found = self._module_imports(key) if symbol.kind == "module" else self._imports(key)
            self._importers[key] = tuple(dict.fromkeys(found))
        return self._importers[key]

    def known_as(self, path: str) -> tuple[str, ...]:
        """The dotted paths, one per module, under which an object can be named."""
        symbol = self.resolver.resolve(path)
        if not isinstance(symbol, Symbol):
            return ()
        paths = [symbol.resolved]
        paths += [
            f"{item.module}.{item.name}"
            for item in self.importers(path)
            if not item.scope and not item.type_checking
        ]
        paths += [f"{module}.{name}" for module, name in self._aliases(path)]
        return tuple(dict.fromkeys(paths))

    def subclasses(self, path: str) -> tuple[Definition, ...]:
        """All classes below a class, near and far."""
        symbol = self.resolver.resolve(path)
        if not isinstance(symbol, Symbol) or symbol.kind != "class":
            return ()
        key = symbol.resolved
        if key not in self._subclasses:
            found: dict[str, Definition] = {}
            pending = [key]
            while pending:
                for item in self._derived(pending.pop()):
                    if item.path not in found and item.path != key:
                        found[item.path] = item
                        pending.append(item.path)
            self._subclasses[key] = tuple(found.values())
        return self._subclasses[key]

    def _derived(self, resolved: str) -> Iterator[Definition]:
        names = {path.rpartition(".")[2] for path in self.known_as(resolved)}
        for name in sorted(names):
            for row in self._rows("bases", name):
                for item in definitions_in(row):
                    for base in item.bases:
                        if base.rpartition(".")[2] == name and self._means(
                            item.module, item.qualname.split(".")[:-1], base, resolved
                        ):
                            yield item

    def _means(self, module: str, owners: list[str], text: str, resolved: str) -> bool:
        """Whether a dotted name in a module's or class's body is the object."""
        found = self.lookup.named(module, owners, text)
        return isinstance(found, Found) and found.dotted == resolved

    def file(self, module: str) -> str | None:
        """The file of a module."""
        number = self._numbers.get(module)
        return None if number is None else self._stored.modules[number][1]

    def calling(self, name: str) -> tuple[str, ...]:
        """The modules that call something as `x.name(…)`."""
        return self._modules("called", name)

    def importing(self, module: str) -> tuple[str, ...]:
        """The modules that import a module, or something from it, by exactly this name."""
        return self._modules("sources", module)

    def loaded_with(self, module: str, reports_as: str = "cuda") -> frozenset[str]:
        """The modules of the release that importing one module loads, itself and packages included.

        Imports inside functions, under TYPE_CHECKING and for other devices do not count.
        """
        done: set[str] = set()
        pending = [module]
        while pending:
            name = pending.pop()
            if name in done or name.partition(".")[0] != ROOT:
                continue
            done.add(name)
            if "." in name:
                pending.append(name.rpartition(".")[0])
            number = self._numbers.get(name)
            row = None if number is None else self._row(number)
            for source, attribute, guard in () if row is None else loads_in(row):
                if holds(guard, reports_as) is not False:
                    pending.append(source)
                    if attribute is not None and f"{source}.{attribute}" in self._numbers:
                        pending.append(f"{source}.{attribute}")
        return frozenset(done)

    def _modules(self, table: str, key: str) -> tuple[str, ...]:
        return tuple(self._stored.modules[n][0] for n in self._table(table).get(key, ()))

    def expect(self, paths: Iterable[str]) -> None:
        """Say which objects `references` will be asked for, so that it parses no module twice."""
        self._references.expect(paths)

    def references(self, path: str) -> tuple[Reference, ...]:
        """Every use of the object that a path leads to, in its own module and its importers."""
        return self._references.references(path)

    def method_calls(self, class_path: str, name: str) -> tuple[Reference, ...]:
        """The calls `x.name(…)` that may reach a class's method.

        These are calls on `self`, `cls` and `super()` in the class and its relatives, on what the
        text shows to be an instance, and, where no other class of the release has the method, on
        anything.
        """
        return self._references.method_calls(class_path, name)

    @property
    def lookup(self) -> Lookup:
        """The look-up that the resolver uses."""
        return self.resolver.lookup

    def _rows(self, table: str, key: str | bytes) -> Iterator[list[Any]]:
        for number in self._table(table).get(key, ()):
            row = self._row(number)
            if row is not None:
                yield row

    def _leads_to(self, path: str, resolved: str) -> bool:
        return self.resolver.definition(path) == resolved

    def _imports(self, resolved: str) -> Iterator[Import]:
        seen: set[str] = set()
        exposed = {resolved}
        pending = [resolved.rpartition(".")[2]]
        while pending:
            name = pending.pop()
            if name in seen:
                continue
            seen.add(name)
            for row in self._rows("imported", name):
                for item, attribute in imports_in(row):
                    if attribute == name and self._leads_to(item.path, resolved):
                        if not item.scope and not item.type_checking:
                            pending.append(item.name)
                            exposed.add(f"{item.module}.{item.name}")
                        yield item
            for row in self._rows("aliased", name):
                for alias, target in aliases_in(row):
                    if target.rpartition(".")[2] == name and self._leads_to(
                        f"{row[0]}.{alias}", resolved
                    ):
                        pending.append(alias)
                        exposed.add(f"{row[0]}.{alias}")
        yield from self._through_wildcards(resolved, seen, exposed)

    def _through_wildcards(
        self, resolved: str, names: set[str], exposed: set[str]
    ) -> Iterator[Import]:
        """What `from source import *` brings along, also from a module that has it that way."""
        before = -1
        while before != len(exposed):
            before = len(exposed)
            for module, source, location, guard in self._wildcards:
                for name in names:
                    path, given = f"{module}.{name}", f"{source}.{name}"
                    if given not in exposed or path in exposed:
                        continue
                    if self._leads_to(path, resolved):
                        exposed.add(path)
                        yield Import(module, name, given, location, guard)

    @cached_property
    def _wildcards(self) -> tuple[tuple[str, str, Location, str | None], ...]:
        """Every wildcard import: the module, its source, where, and the guard."""
        return tuple(
            (row[0], source, location, guard)
            for row in self._rows("imported", "*")
            for source, location, guard in wildcards_in(row)
        )

    def _aliases(self, path: str) -> Iterator[tuple[str, str]]:
        symbol = self.resolver.resolve(path)
        if not isinstance(symbol, Symbol):
            return
        names = {item.name for item in self.importers(path)}
        names.add(symbol.resolved.rpartition(".")[2])
        for name in sorted(names):
            for row in self._rows("aliased", name):
                for alias, target in aliases_in(row):
                    if target.rpartition(".")[2] == name and self._leads_to(
                        f"{row[0]}.{alias}", symbol.resolved
                    ):
                        yield row[0], alias

    def _module_imports(self, module: str) -> Iterator[Import]:
        for row in self._rows("imported", module.rpartition(".")[2]):
            for item, attribute in imports_in(row):
                if attribute is not None and item.path == module:
                    yield item
        for row in self._rows("sources", module):
            for item, attribute in imports_in(row):
                if attribute is None and item.path == module:
                    yield item

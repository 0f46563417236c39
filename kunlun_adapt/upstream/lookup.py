"""Follow a name to the statement that defines it, over as many modules as it takes."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import replace

from kunlun_adapt.upstream import syntax
from kunlun_adapt.upstream.found import (
    Found,
    Lost,
    candidates,
    class_body,
    distinct,
    is_declared_only,
    is_definition,
    is_rebuilt,
    merge,
    own_scopes,
    preference,
    through,
)
from kunlun_adapt.upstream.module import Binding, ModuleTable, read_module
from kunlun_adapt.upstream.release import Release
from kunlun_adapt.upstream.symbols import Location
from kunlun_adapt.upstream.syntax import Span

ROOT = "sglang"

Seen = frozenset[tuple[str, str]]
_NOTHING_SEEN: Seen = frozenset()


class Lookup:
    """Name look-up in one release; tables are built on demand and kept."""

    def __init__(self, release: Release) -> None:
        self.release = release
        #: Gives the table of a module that need not be read again, None of any other.
        self.known: Callable[[str], ModuleTable | None] | None = None
        self._tables: dict[str, ModuleTable | Lost | None] = {}
        self._names: dict[tuple[str, str], Found | Lost] = {}
        self._donors: dict[str, tuple[Found, ...]] = {}
        self._mros: dict[str, tuple[tuple[Found, ...], tuple[str, ...]]] = {}

    def table(self, module: str) -> ModuleTable | Lost | None:
        """A module's table, None for a namespace or no module, Lost where it cannot be parsed."""
        if module not in self._tables:
            self._tables[module] = self._read(module)
        return self._tables[module]

    def _read(self, module: str) -> ModuleTable | Lost | None:
        table = None if self.known is None else self.known(module)
        if table is not None:
            return table
        file = self.release.module_file(module)
        source = None if file is None else self.release.read(file)
        if file is None or source is None:
            return None
        try:
            return read_module(module, file, source)
        except SyntaxError as error:
            return Lost("unparsable", Location(file, error.lineno or 1), error.msg or "bad syntax")
        except (ValueError, RecursionError, MemoryError) as error:
            return Lost("unparsable", Location(file, 1), str(error) or type(error).__name__)

    def is_module(self, module: str) -> bool:
        """Whether a module, package or namespace folder has this dotted name."""
        if module in self._tables and self._tables[module] is not None:
            return True
        return self.release.module_file(module) is not None or self.release.is_dir(
            module.replace(".", "/")
        )

    def module(self, name: str, via: tuple[Location, ...] = ()) -> Found | Lost:
        """The module of this name itself."""
        if not self.is_module(name):
            return Lost("module_missing", None, f"SGLang {self.release.version} has no {name}")
        table = self.table(name)
        return table if isinstance(table, Lost) else Found(name, table, via=via)

    def name(self, module: str, name: str, seen: Seen = _NOTHING_SEEN) -> Found | Lost:
        """What `module.name` is: a binding, a wildcard's, a `__getattr__`'s, or a submodule."""
        key = (module, name)
        if key in seen:
            return Lost("dangling_reexport", None, f"{module}.{name} is imported from itself")
        if key in self._names:
            return self._names[key]
        result = self._name(module, name, seen | {key})
        # A result below a cycle depends on where the walk began, so only whole walks are kept.
        if not seen:
            self._names[key] = result
        return result

    def _name(self, module: str, name: str, seen: Seen) -> Found | Lost:
        table = self.table(module)
        if isinstance(table, Lost):
            return table
        submodule = f"{module}.{name}"
        if table is None:
            if self.is_module(submodule):
                return self.module(submodule)
            return Lost("symbol_missing", None, f"{module} has no {name}")
        bound = table.scope.bindings.get(name, [])
        result = self._choose(table, (), bound, seen)
        if isinstance(result, Found) and not is_declared_only(result):
            return result
        served = self._wildcard(table, name, seen) or self._served(table, name, seen)
        if served is not None and (result is None or isinstance(served, Found)):
            return served
        if self.is_module(submodule) and table.is_package:
            return self.module(submodule)
        if result is not None:
            return result
        return Lost("symbol_missing", None, f"{module} does not define or import {name}")

    def _choose(
        self, table: ModuleTable, owners: tuple[Binding, ...], bound: list[Binding], seen: Seen
    ) -> Found | Lost | None:
        """The definition among several bindings of one name, the others as its variants."""
        results: list[Found | Lost] = []
        for item in candidates(bound):
            chosen = self._branches(table, owners, item, seen)
            results += chosen or [self._follow(table, owners, item, bound, seen)]
        found = distinct(item for item in results if isinstance(item, Found))
        if found:
            first = min(found, key=preference)
            rest = [part for item in found if item is not first for part in (item, *item.others)]
            rest = distinct((*first.others, *rest))
            return replace(first, others=tuple(replace(item, others=()) for item in rest))
        lost = [item for item in results if isinstance(item, Lost)]
        if lost:
            return lost[0]
        for item in bound:
            if item.type_checking:
                at = Location(table.file, item.line)
                return Lost(
                    "type_checking_only", at, f"{item.name} is bound only under TYPE_CHECKING"
                )
        return None

    def _branches(
        self, table: ModuleTable, owners: tuple[Binding, ...], binding: Binding, seen: Seen
    ) -> list[Found]:
        """The definitions that `name = one if condition else other` chooses from."""
        node = table.node(binding) if binding.conditional else None
        value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
        found: list[Found] = []
        for condition, text in syntax.branches(value) if value is not None else ():
            target = self.dotted_name(table, owners, text, seen)
            if isinstance(target, Found) and not target.external and is_definition(target):
                guard = syntax.joined(binding.guard, condition)
                found.append(through(target, Location(table.file, binding.line), guard))
        return found

    def _follow(
        self,
        table: ModuleTable,
        owners: tuple[Binding, ...],
        binding: Binding,
        bound: list[Binding],
        seen: Seen,
    ) -> Found | Lost:
        here = Location(table.file, binding.line)
        if binding.kind == "import":
            return self._import(binding, here, seen)
        itself = Found(table.name, table, binding, owners, guard=binding.guard)
        earlier = [item for item in bound[: bound.index(binding)] if not item.type_checking]
        if binding.alias == binding.name and earlier:
            # `x = x` is what a careless rename leaves behind.
            target = self._follow(table, owners, earlier[-1], bound, seen)
            return through(target, here, binding.guard) if isinstance(target, Found) else target
        if binding.alias is not None:
            target = self.dotted_name(table, owners, binding.alias, seen)
            if isinstance(target, Found) and not target.external and is_definition(target):
                return through(target, here, binding.guard)
        called = (binding.call or "").rpartition(".")[2]
        if called == "LazyImport" and len(binding.call_strings) == 2:
            source, attribute = binding.call_strings
            if source.partition(".")[0] != ROOT:
                return Found(
                    f"{source}.{attribute}", via=(here,), guard=binding.guard, external=True
                )
            target = self.name(source, attribute, seen)
            if isinstance(target, Lost):
                return Lost("dangling_reexport", here, f"{source} has no {attribute}")
            return replace(through(target, here, binding.guard), lazy=True)
        if binding.name in binding.call_names:
            # `f = compile(f)`: still the definition above, in a wrapper.
            for item in reversed(earlier):
                if item.kind in ("function", "class"):
                    inner = Found(table.name, table, item, owners, guard=item.guard)
                    return replace(through(inner, here, binding.guard), wrapper=binding.call)
        return itself

    def _import(self, binding: Binding, here: Location, seen: Seen) -> Found | Lost:
        source, attribute = binding.source, binding.attribute
        if not source:
            return Lost("dangling_reexport", here, "the relative import leaves the package")
        if source.partition(".")[0] != ROOT:
            path = source if attribute is None else f"{source}.{attribute}"
            return Found(path, via=(here,), guard=binding.guard, external=True)
        if not self.is_module(source):
            return Lost(
                "dangling_reexport", here, f"{source}, from which it is imported, does not exist"
            )
        target = self.module(source) if attribute is None else self.name(source, attribute, seen)
        if isinstance(target, Lost) and attribute and self.is_module(f"{source}.{attribute}"):
            target = self.module(f"{source}.{attribute}")
        if isinstance(target, Found):
            return through(target, here, binding.guard)
        if target.reason in ("dangling_reexport", "unparsable") and target.at is not None:
            return target
        return Lost("dangling_reexport", here, f"imported from {source}, which has no {attribute}")

    def _wildcard(self, table: ModuleTable, name: str, seen: Seen) -> Found | Lost | None:
        for wildcard in reversed(table.scope.wildcards):
            here = Location(table.file, wildcard.line)
            if wildcard.source.partition(".")[0] != ROOT:
                continue
            source = self.table(wildcard.source)
            if not isinstance(source, ModuleTable):
                continue
            if source.exported is not None:
                if name not in source.exported:
                    continue
            elif name.startswith("_"):
                continue
            elif name not in source.scope.bindings and not source.scope.wildcards:
                # Without `__all__` neither submodules nor `__getattr__` names are handed on.
                continue
            target = self.name(wildcard.source, name, seen)
            if isinstance(target, Found):
                return through(target, here, wildcard.guard)
            if target.reason == "dangling_reexport" and target.at is not None:
                return target
        return None

    def _served(self, table: ModuleTable, name: str, seen: Seen) -> Found | Lost | None:
        if table.lazy is None or name not in table.lazy.names:
            return None
        entry = table.lazy.names[name]
        here = Location(table.file, entry.line)
        for stated in entry.modules:
            for source in (f"{table.name}.{stated.lstrip('.')}", stated):
                if source.partition(".")[0] == ROOT and self.is_module(source):
                    target = self.name(source, entry.attribute or name, seen)
                    if isinstance(target, Found):
                        return through(target, here, None)
                    return Lost(
                        "dangling_reexport", here, f"{source} has no {entry.attribute or name}"
                    )
        if entry.modules:
            return Lost("dangling_reexport", here, f"{entry.modules[0]} does not exist")
        binding = Binding(name, "served", entry.line, Span())
        return Found(table.name, table, binding, lazy=True)

    def dotted_name(
        self,
        table: ModuleTable,
        owners: tuple[Binding, ...],
        text: str,
        seen: Seen = _NOTHING_SEEN,
    ) -> Found | Lost:
        """What a dotted name means inside a module or class body."""
        first, *rest = text.split(".")
        scope = owners[-1].scope if owners else None
        if scope is not None and first in scope.bindings:
            key = (f"{table.name}:{owners[-1].name}", first)
            if key in seen:
                return Lost("symbol_missing", None, f"{first} is defined by itself")
            chosen = self._choose(table, owners, scope.bindings[first], seen | {key})
            found: Found | Lost = chosen or Lost("symbol_missing", None, f"no {first}")
        else:
            found = self.name(table.name, first, seen)
        for part in rest:
            if isinstance(found, Lost):
                return found
            found = self.member(found, part, seen)
        return found

    def walk(self, path: str) -> Found | Lost:
        """What stands at the dotted path of a definition, as `Found.dotted` gives it."""
        parts = path.split(".")
        depth = len(parts)
        while depth > 1 and not self.is_module(".".join(parts[:depth])):
            depth -= 1
        found = self.module(".".join(parts[:depth]))
        for part in parts[depth:]:
            if isinstance(found, Lost):
                break
            found = self.member(found, part)
        return found

    def named(self, module: str, owners: list[str], text: str) -> Found | Lost:
        """What a dotted name means in the body of a module, or of the class that `owners` name."""
        table = self.table(module)
        if not isinstance(table, ModuleTable):
            return Lost("module_missing", None, f"no module {module}")
        scope, bindings = table.scope, []
        for owner in owners:
            klass = next((b for b in reversed(scope.bindings.get(owner, [])) if b.scope), None)
            if klass is None or klass.scope is None:
                break
            bindings.append(klass)
            scope = klass.scope
        return self.dotted_name(table, tuple(bindings), text)

    def member(self, owner: Found, name: str, seen: Seen = _NOTHING_SEEN) -> Found | Lost:
        """What `owner.name` is, for a module or a class."""
        if owner.external:
            return replace(owner, module=f"{owner.module}.{name}")
        if owner.binding is None:
            found = self.name(owner.module, name, seen)
            return replace(found, via=owner.via + found.via) if isinstance(found, Found) else found
        classes, foreign = self.mro(owner)
        for klass in classes:
            result = self._own_member(klass, name, seen)
            if result is None:
                continue
            if isinstance(result, Found) and klass is not classes[0]:
                result = replace(result, inherited_from=klass.dotted)
            if isinstance(result, Found):
                result = replace(result, via=owner.via + result.via)
            return result
        if not classes:
            detail = f"{owner.dotted} is not a class whose members the text shows"
        elif foreign:
            detail = (
                f"{owner.dotted} does not define it; it may inherit it from "
                f"{', '.join(foreign)}, which the release does not contain"
            )
        else:
            detail = f"neither {owner.dotted} nor a base of it defines {name}"
        return Lost("symbol_missing", owner.location, detail)

    def _own_member(self, klass: Found, name: str, seen: Seen) -> Found | Lost | None:
        assert klass.table is not None and klass.binding is not None
        for scope in own_scopes(klass):
            if name in scope.bindings:
                owners = (*klass.owners, klass.binding)
                result = self._choose(klass.table, owners, scope.bindings[name], seen)
                if result is not None:
                    return result
        for donor in self.donors(klass):
            for scope in own_scopes(donor):
                fields = [item for item in scope.bindings.get(name, []) if item.annotated]
                if fields and donor.table is not None and donor.binding is not None:
                    owners = (*donor.owners, donor.binding)
                    result = self._choose(donor.table, owners, fields, seen)
                    if isinstance(result, Found):
                        return replace(result, inherited_from=donor.dotted)
        return None

    def donors(self, klass: Found) -> tuple[Found, ...]:
        """The classes whose annotated fields a class made by a call (`defstruct`) takes over.

        They are those of a list of classes in the module that is also given to the class as an
        attribute; that is how `ServerArgs` is put together since 0.5.20.
        """
        key = klass.dotted
        if key not in self._donors:
            self._donors[key] = tuple(self._find_donors(klass)) if is_rebuilt(klass) else ()
        return self._donors[key]

    def _find_donors(self, klass: Found) -> Iterator[Found]:
        table = klass.table
        given = None if table is None else table.attached.get(klass.qualname)
        if table is None or given is None:
            return
        aliases = {item.alias for bound in given.bindings.values() for item in bound if item.alias}
        for name in sorted(aliases):
            for binding in table.scope.bindings.get(name, []):
                if binding.kind != "assignment" or binding.type_checking:
                    continue
                for text in syntax.names_of(table.node(binding)):
                    found = self.dotted_name(table, (), text)
                    body = class_body(found) if isinstance(found, Found) else None
                    if body is not None:
                        yield body

    def mro(self, owner: Found) -> tuple[tuple[Found, ...], tuple[str, ...]]:
        """A class's bases in Python's order, itself first, and the bases from elsewhere."""
        key = owner.dotted
        if key not in self._mros:
            # Stands while the bases are walked, so that a cycle of bases ends.
            self._mros[key] = ((), ())
            self._mros[key] = self._linearize(owner)
        return self._mros[key]

    def _linearize(self, owner: Found) -> tuple[tuple[Found, ...], tuple[str, ...]]:
        klass = class_body(owner)
        if klass is None or klass.binding is None or klass.table is None:
            return (), ()
        orders: list[list[Found]] = []
        parents: list[Found] = []
        foreign: list[str] = []
        for text in klass.binding.bases:
            base = self.dotted_name(klass.table, klass.owners, text)
            body = class_body(base) if isinstance(base, Found) else None
            if body is None:
                foreign.append(base.module if isinstance(base, Found) and base.external else text)
                continue
            order, outside = self.mro(body)
            orders.append(list(order))
            parents.append(body)
            foreign += [item for item in outside if item not in foreign]
        merged = merge([*orders, parents])
        return (klass, *merged), tuple(
            item for item in foreign if item not in ("object", "Generic", "typing.Generic")
        )

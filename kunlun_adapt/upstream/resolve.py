"""Resolve dotted paths in a release: the public face of name look-up."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kunlun_adapt.upstream import syntax
from kunlun_adapt.upstream.describe import Describer
from kunlun_adapt.upstream.found import Found, Lost, own_scopes
from kunlun_adapt.upstream.lookup import ROOT, Lookup
from kunlun_adapt.upstream.module import ModuleTable
from kunlun_adapt.upstream.release import Release
from kunlun_adapt.upstream.symbols import Location, Missing, Symbol

if TYPE_CHECKING:
    from kunlun_adapt.upstream.answers import Answers
    from kunlun_adapt.upstream.fetch import Progress
    from kunlun_adapt.upstream.index import Index
    from kunlun_adapt.upstream.suggest import Places


class Resolver:
    """Answers what a dotted path is in one release, reading only the modules on the way."""

    def __init__(self, release: Release, *, progress: Progress | None = None) -> None:
        self.release = release
        #: Told how far the building of the index is.
        self.progress = progress
        self._index: Index | None = None
        self._kept: Answers | None = None
        self.lookup = Lookup(release)
        self._describer = Describer(self.lookup)
        self._places: Places | None = None
        self._compiled: frozenset[str] | None = None
        self._answers: dict[str, Symbol | Missing] = {}
        self._definitions: dict[str, str | None] = {}

    @property
    def index(self) -> Index:
        """The index of the whole release, read from the cache or built on first use."""
        if self._index is None:
            # Imported here: a clean workspace does without it.
            from kunlun_adapt.upstream.index import open_index

            self._index = open_index(self.release, resolver=self, progress=self.progress)
        return self._index

    def use_cache(self, cache_dir: Path | None = None) -> None:
        """Answer from what earlier runs kept, and where they kept nothing, through their index."""
        from kunlun_adapt.upstream.answers import answers_of

        if self._kept is None:
            self._kept = answers_of(self.release, cache_dir)
        if self.lookup.known is None:
            self.lookup.known = partial(self._known, cache_dir)

    def keep_answers(self) -> None:
        """Keep what was found for the next run, where `use_cache` found a place for it."""
        if self._kept is not None:
            self._kept.keep()

    def recall(self, kind: str, key: str, make: Callable[[], Any]) -> Any:
        """What `make` says of the release, in plain values; it is asked once for all runs.

        `kind` has to change with the code behind `make` where that is not in this package.
        """
        return make() if self._kept is None else self._kept.recall(kind, key, make)

    def _known(self, cache_dir: Path | None, module: str) -> ModuleTable | None:
        """The table of a module where the cache has the index; it is opened for the first one."""
        from kunlun_adapt.upstream.index import held_index

        self.lookup.known = None
        if self._index is None:
            self._index = held_index(self, cache_dir)
        return None if self._index is None else self._index.table(module)

    @property
    def version(self) -> str:
        """The release's version."""
        return self.release.version

    def resolve(self, path: str) -> Symbol | Missing:
        """Follow a dotted path to its definition, or say why there is none.

        A miss carries no suggestions; `suggest` adds them, which reads the whole release once.
        """
        if path not in self._answers:
            self._answers[path] = self._resolved(path)
        return self._answers[path]

    def _resolved(self, path: str) -> Symbol | Missing:
        if self._kept is None:
            return self._read(path)
        from kunlun_adapt.upstream.answers import answer_of, answer_row

        row = self._kept.recall("symbol", path, lambda: answer_row(self._read(path)))
        return answer_of(path, row)

    def _read(self, path: str) -> Symbol | Missing:
        found = self.find(path)
        return found if isinstance(found, Missing) else self._describer.describe(found, path)

    def definition(self, path: str) -> str | None:
        """The dotted path of what `path` leads to, None where it leads nowhere.

        It does not read what the definition says, as `resolve` does.
        """
        if path not in self._definitions:
            found = self.find(path)
            self._definitions[path] = found.dotted if isinstance(found, Found) else None
        return self._definitions[path]

    def is_async_generator(self, path: str) -> bool:
        """Whether a path leads to an `async def` that yields; false where its text is not had."""
        return bool(self.recall("yields", path, lambda: self._yields(path)))

    def _yields(self, path: str) -> bool:
        found = self.find(path)
        if isinstance(found, Missing) or found.table is None or found.binding is None:
            return False
        if found.binding.kind != "function":
            return False
        return syntax.is_async_generator(found.table.node(found.binding))

    def suggest(self, missing: Missing, fingerprint: str | None = None) -> Missing:
        """The same miss with the places where the symbol may be now, best first.

        `fingerprint` is the symbol's body hash in a release where it still resolved.
        """
        # Imported here: most runs have no miss to explain.
        from kunlun_adapt.upstream.suggest import Places, suggest

        if self._places is None:
            self._places = Places(self.release)
        return suggest(self.lookup, self._describer, self._places, missing, fingerprint)

    def table(self, module: str) -> ModuleTable | None:
        """The table of a module; None where there is none or it cannot be parsed."""
        table = self.lookup.table(module)
        return table if isinstance(table, ModuleTable) else None

    def members(self, class_path: str) -> dict[str, Symbol]:
        """A class's methods and attributes by name, own and inherited; empty for no class."""
        names = self.recall("members", class_path, lambda: self._member_names(class_path))
        found = {name: self.resolve(f"{class_path}.{name}") for name in names}
        return {name: item for name, item in found.items() if isinstance(item, Symbol)}

    def _member_names(self, class_path: str) -> list[str]:
        owner = self.find(class_path)
        if isinstance(owner, Missing):
            return []
        names: dict[str, None] = {}
        for klass in self.lookup.mro(owner)[0]:
            scopes = [*own_scopes(klass)]
            scopes += [scope for donor in self.lookup.donors(klass) for scope in own_scopes(donor)]
            names |= dict.fromkeys(name for scope in scopes for name in scope.bindings)
        return list(names)

    def guards(self, path: str) -> tuple[tuple[str | None, Location], ...]:
        """The guard and the place of each definition of a name; none of a module or a miss.

        It does not read what the definitions say, as `resolve` does.
        """
        rows = self.recall("guards", path, lambda: self._guards(path))
        return tuple((guard, Location(file, line)) for guard, file, line in rows)

    def _guards(self, path: str) -> list[tuple[str | None, str, int]]:
        found = self.find(path)
        if isinstance(found, Missing) or found.binding is None:
            return []
        places = [(item.guard, item.location) for item in (found, *found.others)]
        return [(guard, place.file, place.line) for guard, place in places]

    def assigned_at(self, module: str, name: str) -> tuple[Location, ...]:
        """The assignments in a module's own body that bind a name."""
        key = f"{module}.{name}"
        rows = self.recall("assigned_at", key, lambda: list(self._assigned_at(module, name)))
        return tuple(Location(file, line) for file, line in rows)

    def _assigned_at(self, module: str, name: str) -> Iterator[tuple[str, int]]:
        table = self.table(module)
        if table is not None:
            for item in table.scope.bindings.get(name, []):
                if item.kind == "assignment":
                    yield table.file, item.line

    def decorated(self, module: str, decorator: str) -> tuple[tuple[str, Location], ...]:
        """The texts with which a module calls a decorator first, each with the line below it."""
        key = f"{module}:{decorator}"
        rows = self.recall("decorated", key, lambda: list(self._decorated(module, decorator)))
        return tuple((text, Location(file, line)) for text, file, line in rows)

    def _decorated(self, module: str, decorator: str) -> Iterator[tuple[str, str, int]]:
        table = self.table(module)
        for bound in table.scope.bindings.values() if table is not None else ():
            for binding in bound:
                if table is None or decorator not in binding.decorators:
                    continue
                for item in getattr(table.node(binding), "decorator_list", ()):
                    if isinstance(item, ast.Call) and ast.unparse(item.func) == decorator:
                        for given in item.args[:1]:
                            text = syntax.string_of(given)
                            if text is not None:
                                yield text, table.file, binding.line

    def statement(self, symbol: Symbol) -> ast.stmt | None:
        """The statement that defines a symbol, None where its text cannot be had."""
        if not symbol.qualname:
            return None
        key = f"{symbol.module}:{symbol.qualname}:{symbol.location.line}"
        text = self.recall("statement", key, lambda: self._text(symbol))
        try:
            return None if text is None else syntax.parse_span(text)
        except (SyntaxError, ValueError):
            return None

    def _text(self, symbol: Symbol) -> str | None:
        table = self.table(symbol.module)
        if table is None:
            return None
        scope = table.scope
        *owners, name = symbol.qualname.split(".")
        for owner in owners:
            inner = [b.scope for b in scope.bindings.get(owner, ()) if b.scope is not None]
            if not inner:
                return None
            scope = inner[-1]
        bound = scope.bindings.get(name, [])
        here = [b for b in bound if b.line == symbol.location.line] or bound[-1:]
        return table.text(here[0]) if here and here[0].kind != "served" else None

    def find(self, path: str) -> Found | Missing:
        """Follow a dotted path to its definition without reading what the definition says.

        That is much less work than `resolve`, above all for classes.
        """
        parts = path.split(".")
        if not all(part.isidentifier() for part in parts):
            return Missing(path, "symbol_missing", detail=f"{path!r} is not a dotted name")
        if parts[0] != ROOT:
            return Missing(path, "module_missing", detail=f"{parts[0]} is not part of SGLang")
        depth = 1
        while depth < len(parts) and self.lookup.is_module(".".join(parts[: depth + 1])):
            depth += 1
        # A package may bind a name that one of its modules has too; the binding hides the
        # module as an attribute, while the path of an import still leads to the module.
        starts = (depth - 1, depth) if depth == len(parts) else (depth, depth - 1)
        first: Missing | None = None
        for start in starts:
            if start < 1:
                continue
            result = self._walk(path, parts, start)
            if isinstance(result, Found):
                return result
            if first is None or start == depth:
                first = result
        assert first is not None
        return first

    def _walk(self, path: str, parts: list[str], start: int) -> Found | Missing:
        found = self.lookup.module(".".join(parts[:start]))
        for index in range(start, len(parts)):
            if isinstance(found, Lost):
                return self._missing(path, parts, index - 1, found)
            found = self.lookup.member(found, parts[index])
        if isinstance(found, Lost):
            return self._missing(path, parts, len(parts) - 1, found)
        return found

    def _missing(self, path: str, parts: list[str], index: int, lost: Lost) -> Missing:
        """The miss of `parts[index]`."""
        deepest = ".".join(parts[:index])
        wanted = ".".join(parts[: index + 1])
        reason, at, detail = lost.reason, lost.at, lost.detail
        if reason == "symbol_missing" and self.lookup.is_module(deepest):
            if self._is_compiled(wanted):
                reason, detail = "unparsable", f"{wanted} is a compiled extension module"
            elif self._is_module_name(deepest, parts, index):
                reason = "module_missing"
                detail = f"SGLang {self.version} has no module {wanted}"
        return Missing(path, reason, at, detail, deepest)

    def _is_module_name(self, deepest: str, parts: list[str], index: int) -> bool:
        """Whether a missing part was meant as a module: its place or its spelling says so."""
        table = self.lookup.table(deepest)
        if table is None:
            return True
        below_package = isinstance(table, ModuleTable) and table.is_package
        return below_package and index < len(parts) - 1 and parts[index].islower()

    def _is_compiled(self, module: str) -> bool:
        if self._compiled is None:
            self._compiled = frozenset(
                "/".join((*folders, name.partition(".")[0]))
                for *folders, name in (file.split("/") for file in self.release.files())
                if name.endswith((".so", ".pyd"))
            )
        return module.replace(".", "/") in self._compiled

"""Resolve dotted paths in a release: the public face of name look-up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kunlun_adapt.upstream import syntax
from kunlun_adapt.upstream.describe import Describer
from kunlun_adapt.upstream.found import Found, Lost, own_scopes
from kunlun_adapt.upstream.lookup import ROOT, Lookup
from kunlun_adapt.upstream.module import ModuleTable
from kunlun_adapt.upstream.release import Release
from kunlun_adapt.upstream.symbols import Missing, Symbol

if TYPE_CHECKING:
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

    def use_held_index(self) -> None:
        """Follow names through the index where the cache has it: no module is parsed then."""
        # Imported here: where nothing is held, nothing of it is needed.
        from kunlun_adapt.upstream.index import held_index

        if self._index is None:
            self._index = held_index(self)

    @property
    def version(self) -> str:
        """The release's version."""
        return self.release.version

    def resolve(self, path: str) -> Symbol | Missing:
        """Follow a dotted path to its definition, or say why there is none.

        A miss carries no suggestions; `suggest` adds them, which reads the whole release once.
        """
        if path not in self._answers:
            found = self.find(path)
            self._answers[path] = (
                found if isinstance(found, Missing) else self._describer.describe(found, path)
            )
        return self._answers[path]

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
        owner = self.find(class_path)
        if isinstance(owner, Missing):
            return {}
        found: dict[str, Symbol] = {}
        for klass in self.lookup.mro(owner)[0]:
            scopes = [*own_scopes(klass)]
            scopes += [scope for donor in self.lookup.donors(klass) for scope in own_scopes(donor)]
            for name in dict.fromkeys(name for scope in scopes for name in scope.bindings):
                if name not in found:
                    symbol = self.resolve(f"{class_path}.{name}")
                    if isinstance(symbol, Symbol):
                        found[name] = symbol
        return found

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

"""Where a missing symbol may be now: the same name elsewhere, or a near name where it was."""

from __future__ import annotations

import re
from dataclasses import replace

from rapidfuzz import fuzz, process

from kunlun_adapt.upstream.describe import describe
from kunlun_adapt.upstream.lookup import Found, Lookup, Lost, own_scopes
from kunlun_adapt.upstream.module import ModuleTable
from kunlun_adapt.upstream.release import Release, module_of
from kunlun_adapt.upstream.symbols import Location, Missing, Suggestion, Symbol

_DEFINITION = re.compile(rb"^[ \t]*(?:async[ \t]+)?(?:def|class)[ \t]+(\w+)|^(\w+)[ \t]*[:=]", re.M)
_COUNT = 5
_NEAR_SCORE = 75.0


class Places:
    """Where each name is defined in a release, found by one scan of the text on first use."""

    def __init__(self, release: Release) -> None:
        self._release = release
        self._by_name: dict[bytes, list[tuple[int, int]]] | None = None
        self._files: list[str] = []

    def of(self, name: str) -> list[Location]:
        """The lines that define a name, in file order; test files left out."""
        if self._by_name is None:
            self._by_name = self._scan()
        return [
            Location(self._files[file], self._line(self._files[file], offset))
            for file, offset in self._by_name.get(name.encode(), [])
        ]

    def _line(self, file: str, offset: int) -> int:
        return (self._release.read(file) or b"").count(b"\n", 0, offset) + 1

    def _scan(self) -> dict[bytes, list[tuple[int, int]]]:
        found: dict[bytes, list[tuple[int, int]]] = {}
        for path in self._release.files():
            if module_of(path) is None or "/test/" in path:
                continue
            number = len(self._files)
            self._files.append(path)
            for match in _DEFINITION.finditer(self._release.read(path) or b""):
                group = 1 if match[1] else 2
                found.setdefault(match[group], []).append((number, match.start(group)))
        return found


def suggest(
    lookup: Lookup, places: Places, missing: Missing, fingerprint: str | None = None
) -> Missing:
    """Add to a miss where the symbol may be now, best first.

    `fingerprint` is the body hash that the symbol had when it still resolved: a place with the
    same body is all but certain.
    """
    rest = missing.path.removeprefix(missing.deepest).lstrip(".").split(".")
    leaf = missing.path.rpartition(".")[2]
    found: list[Suggestion] = []
    wanted = [leaf] if leaf == rest[0] else [leaf, *rest[:-1]]
    for name in wanted:
        tail = missing.path.partition(f".{name}.")[2] if name != leaf else ""
        for location in places.of(name):
            symbol = _symbol_at(lookup, location, name, tail)
            if symbol is None or symbol.path == missing.path:
                continue
            same = bool(fingerprint) and symbol.fingerprint == fingerprint
            score = 0.6 + 0.3 * fuzz.ratio(missing.path, symbol.path) / 100
            why = f"{symbol.kind} of the same name"
            if same:
                score, why = 0.99, f"{why} and the same body"
            elif fingerprint:
                why += ", another body"
            found.append(Suggestion(symbol.path, symbol.location, round(score, 3), why))
        if found:
            break
    if not found:
        found = _near(lookup, missing.deepest, rest)
    unique = {item.path: item for item in sorted(found, key=lambda item: item.score)}
    best = sorted(unique.values(), key=lambda item: (-item.score, item.path))[:_COUNT]
    return replace(missing, suggestions=tuple(best))


def _near(lookup: Lookup, deepest: str, rest: list[str]) -> list[Suggestion]:
    """Names like the missing one, in the module or class that does exist."""
    names = _names_in(lookup, deepest)
    found: list[Suggestion] = []
    for name, score, _ in process.extract(rest[0], list(names), scorer=fuzz.ratio, limit=3):
        if score >= _NEAR_SCORE:
            path = ".".join([deepest, name, *rest[1:]])
            found.append(Suggestion(path, names[name], round(score / 100, 3), "a similar name"))
    return found


def _names_in(lookup: Lookup, path: str) -> dict[str, Location]:
    module, parts = path, list[str]()
    while module and not lookup.is_module(module):
        module, _, last = module.rpartition(".")
        parts.insert(0, last)
    table = lookup.table(module) if module else None
    names: dict[str, Location] = {}
    if not parts:
        if isinstance(table, ModuleTable):
            for name, bound in table.scope.bindings.items():
                names[name] = Location(table.file, bound[-1].line)
        prefix = module.replace(".", "/") + "/"
        for file in lookup.release.files():
            inner = file.removeprefix(prefix)
            name = inner.partition("/")[0].removesuffix(".py")
            if inner != file and module_of(file) is not None and name != "__init__":
                names.setdefault(name, Location(file, 1))
        return names
    found = lookup.module(module)
    for part in parts:
        if not isinstance(found, Found):
            return names
        found = lookup.member(found, part)
    if isinstance(found, Found):
        for klass in lookup.mro(found)[0]:
            for scope in own_scopes(klass):
                for name, bound in scope.bindings.items():
                    assert klass.table is not None
                    names.setdefault(name, Location(klass.table.file, bound[-1].line))
    return names


def _symbol_at(lookup: Lookup, location: Location, name: str, tail: str = "") -> Symbol | None:
    """The symbol that the definition of `name` at a line makes, plus a dotted tail below it."""
    module = module_of(location.file)
    table = lookup.table(module) if module else None
    if module is None or not isinstance(table, ModuleTable):
        return None
    for qualname in _qualnames(table, location.line, name):
        parts = [*qualname.split("."), *(tail.split(".") if tail else [])]
        found = lookup.module(module)
        for part in parts:
            if isinstance(found, Lost):
                return None
            found = lookup.member(found, part)
        if isinstance(found, Found):
            return describe(lookup, found, ".".join([module, *parts]))
    return None


def _qualnames(table: ModuleTable, line: int, name: str) -> list[str]:
    """The qualified names whose binding stands at a line."""
    found: list[str] = []
    pending = [("", table.scope)]
    while pending:
        prefix, scope = pending.pop()
        for key, bound in scope.bindings.items():
            for item in bound:
                if key == name and item.line == line:
                    found.append(prefix + key)
                if item.scope is not None:
                    pending.append((f"{prefix}{key}.", item.scope))
    return found

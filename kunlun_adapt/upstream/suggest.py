"""Where a missing symbol may be now: the same name elsewhere, or a near name where it was."""

from __future__ import annotations

import re
from dataclasses import replace

from rapidfuzz import fuzz, process

from kunlun_adapt.upstream.describe import Describer
from kunlun_adapt.upstream.found import Found, Lost, own_scopes
from kunlun_adapt.upstream.lookup import ROOT, Lookup
from kunlun_adapt.upstream.module import ModuleTable
from kunlun_adapt.upstream.release import Release, module_of
from kunlun_adapt.upstream.symbols import Location, Missing, Suggestion, Symbol

# Two plain patterns are three times as fast as one with alternatives at each line start; what
# they find inside strings is sorted out when a place is looked at.
_DEFINITION = re.compile(rb"(?:def|class) (\w+)[(:]")
_ASSIGNMENT = re.compile(rb"^(\w+) *[:=]", re.M)
_COUNT = 5
_NEAR_SCORE = 75.0
_LIKE_SCORE = 85.0
_RENAMED = 0.9
#: Names such as `forward` have thousands of places; the nearest files are looked at.
_MAX_PLACES = 20


class Places:
    """Where each name is defined in a release, found by one scan of the text on first use."""

    def __init__(self, release: Release) -> None:
        self._release = release
        self._by_name: dict[bytes, list[tuple[int, int]]] | None = None
        self._files: list[str] = []

    def of(self, name: str) -> list[Location]:
        """The lines that define a name, in file order; test files left out."""
        return [
            Location(self._files[file], self._line(self._files[file], offset))
            for file, offset in self._index().get(name.encode(), [])
        ]

    def like(self, name: str, cutoff: float) -> list[str]:
        """The names that are defined anywhere and spelled almost like this one, best first."""
        hits = process.extract(
            name.encode(), list(self._index()), scorer=fuzz.ratio, limit=3, score_cutoff=cutoff
        )
        return [hit[0].decode("utf-8", "replace") for hit in hits]

    def _index(self) -> dict[bytes, list[tuple[int, int]]]:
        if self._by_name is None:
            self._by_name = self._scan()
        return self._by_name

    def _line(self, file: str, offset: int) -> int:
        return (self._release.read(file) or b"").count(b"\n", 0, offset) + 1

    def _scan(self) -> dict[bytes, list[tuple[int, int]]]:
        found: dict[bytes, list[tuple[int, int]]] = {}
        for path in self._release.files():
            if module_of(path) is None or "/test/" in path:
                continue
            number = len(self._files)
            self._files.append(path)
            source = self._release.read(path) or b""
            for pattern in (_DEFINITION, _ASSIGNMENT):
                for match in pattern.finditer(source):
                    found.setdefault(match[1], []).append((number, match.start(1)))
        return found


def suggest(
    lookup: Lookup,
    describer: Describer,
    places: Places,
    missing: Missing,
    fingerprint: str | None = None,
) -> Missing:
    """Add to a miss where the symbol may be now, best first.

    `fingerprint` is the body hash that the symbol had when it still resolved: a place with the
    same body is all but certain.
    """
    if missing.path.partition(".")[0] != ROOT:
        return missing
    rest = missing.path.removeprefix(missing.deepest).lstrip(".").split(".")
    leaf = missing.path.rpartition(".")[2]
    found: list[Suggestion] = []
    # A method is looked for below its class, since many classes have a `forward`.
    names = [part for part in rest if part[:1].isupper()] or [leaf]
    for name in dict.fromkeys([names[0], leaf]):
        # A module may have the name of what is in it; only a class has something below it.
        tail = "" if name == leaf else missing.path.partition(f".{name}.")[2]
        found = _elsewhere(lookup, describer, places, missing.path, name, tail, fingerprint)
        if found:
            break
    # A rename in place is as likely as a move, so a name that is all but the same stays.
    near = _near(lookup, missing.path, missing.deepest, rest)
    found = [*found, *(item for item in near if item.score >= _RENAMED)] if found else near
    if not found:
        for name in places.like(leaf, _LIKE_SCORE):
            for item in _elsewhere(lookup, describer, places, missing.path, name, "", fingerprint):
                score = round(item.score * fuzz.ratio(name, leaf) / 100, 3)
                found.append(replace(item, score=score, why="a similar name elsewhere"))
    unique = {item.path: item for item in sorted(found, key=lambda item: item.score)}
    best = sorted(unique.values(), key=lambda item: (-item.score, item.path))[:_COUNT]
    return replace(missing, suggestions=tuple(best))


def _elsewhere(
    lookup: Lookup,
    describer: Describer,
    places: Places,
    path: str,
    name: str,
    tail: str,
    fingerprint: str | None,
) -> list[Suggestion]:
    """The places that define a name, with what the path had below it."""
    found: list[Suggestion] = []
    locations = places.of(name)
    if len(locations) > _MAX_PLACES:
        near = {item.file: fuzz.ratio(path.replace(".", "/"), item.file) for item in locations}
        locations = sorted(locations, key=lambda item: -near[item.file])[:_MAX_PLACES]
    for location in locations:
        symbol = _symbol_at(lookup, describer, location, name, tail)
        if symbol is None or symbol.path == path:
            continue
        score = 0.6 + 0.3 * fuzz.ratio(path, symbol.path) / 100
        why = f"{symbol.kind.replace('_', ' ')} of the same name"
        if fingerprint and symbol.fingerprint == fingerprint:
            score, why = 0.99, f"{why} and the same body"
        elif fingerprint:
            why += ", with another body"
        found.append(Suggestion(symbol.path, symbol.location, round(score, 3), why))
    return found


def _near(lookup: Lookup, path: str, deepest: str, rest: list[str]) -> list[Suggestion]:
    """Names like the missing one that do resolve, in the module or class that does exist."""
    names = _names_in(lookup, deepest)
    found: list[Suggestion] = []
    hits = process.extract(
        rest[0], list(names), scorer=fuzz.ratio, limit=5, score_cutoff=_NEAR_SCORE
    )
    for name, score, _ in hits:
        near = ".".join([deepest, name, *rest[1:]])
        owner: Found | Lost = lookup.walk(deepest)
        for part in [name, *rest[1:]]:
            owner = lookup.member(owner, part) if isinstance(owner, Found) else owner
        if isinstance(owner, Found) and near != path:
            found.append(
                Suggestion(near, owner.location, round(score / 100, 3), "a similar name here")
            )
    return found


def _names_in(lookup: Lookup, path: str) -> set[str]:
    """The names that a module, with its wildcards and submodules, or a class may have."""
    found = lookup.walk(path) if path else None
    if not isinstance(found, Found):
        return set()
    if found.binding is not None:
        return {
            name
            for klass in lookup.mro(found)[0]
            for scope in own_scopes(klass)
            for name in scope.bindings
        }
    names: set[str] = set()
    pending, done = [found.module], set[str]()
    while pending:
        module = pending.pop()
        table = lookup.table(module)
        if module in done or not isinstance(table, ModuleTable):
            continue
        done.add(module)
        names |= set(table.scope.bindings)
        pending += [wildcard.source for wildcard in table.scope.wildcards]
    prefix = found.module.replace(".", "/") + "/"
    for file in lookup.release.files():
        if file.startswith(prefix) and module_of(file) is not None:
            names.add(file.removeprefix(prefix).partition("/")[0].removesuffix(".py"))
    return names - {"__init__"}


def _symbol_at(
    lookup: Lookup, describer: Describer, location: Location, name: str, tail: str = ""
) -> Symbol | None:
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
            return describer.describe(found, ".".join([module, *parts]))
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

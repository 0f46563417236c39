"""Who goes with a symbol: its users, and what stood beside it. Both say where it went."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

from kunlun_adapt.upstream import Symbol
from kunlun_adapt.upstream.following import FollowingResolver
from kunlun_adapt.upstream.release import module_of

Company = Literal["users or neighbours follow", "nobody follows", "users go elsewhere"]

_DEFINED = ("function", "class")
MOST = 20
"""So many neighbours are compared."""
LINES = 5
SEVERAL = 3
"""Of neighbours shorter than these lines it takes several: `return False` is at home anywhere."""


class Users:
    """Which modules of a release name each of some symbols, found by one pass over its text."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = {name: name.encode() for name in names}
        self._found: dict[int, dict[str, list[str]]] = {}

    def of(self, reader: FollowingResolver, symbol: Symbol) -> list[str]:
        """Return the other modules that import a symbol, or the class that it is a member of."""
        owner, name = owner_of(symbol)
        if name not in self._names:
            return []
        known = self._found.setdefault(id(reader), {})
        if not known:
            known.update(self._scanned(reader))
        return [
            module
            for module in known.get(name, ())
            if module != symbol.module and reader.definition(f"{module}.{name}") == owner
        ]

    def _scanned(self, reader: FollowingResolver) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {name: [] for name in self._names}
        for file in reader.release.files():
            module = module_of(file)
            if module is None or "/test/" in file:
                continue
            source = reader.release.read(file) or b""
            for name, word in self._names.items():
                if word in source:
                    found[name].append(module)
        return found


def elsewhere(symbol: Symbol) -> set[str]:
    """Return what else a name leads to under other guards; a value there (`= None`) is no place."""
    others = [v for v in symbol.variants if v.kind not in ("constant", "attribute")]
    return {v.resolved for v in others if v.resolved} - {symbol.resolved}


def owner_of(symbol: Symbol) -> tuple[str, str]:
    """Return the path and the name of what others import: the symbol, or its class."""
    name = symbol.qualname.partition(".")[0]
    return f"{symbol.module}.{name}", name


def company(
    old: FollowingResolver, symbol: Symbol, new: FollowingResolver, place: Symbol, users: list[str]
) -> Company:
    """Tell who goes from a symbol of the old release to a place of the new one."""
    _, name = owner_of(symbol)
    there, their_name = owner_of(place)
    named = [module for module in users if new.definition(f"{module}.{name}") is not None]
    follow = [module for module in named if new.definition(f"{module}.{name}") == there]
    if their_name == name and any(_goes_only(new, f"{m}.{name}", there) for m in follow):
        return "users or neighbours follow"
    if named:
        return "users go elsewhere"
    came = set(_definitions(new, place.module)) - set(_definitions(old, place.module))
    gone = set(_definitions(old, symbol.module)) - set(_definitions(new, symbol.module))
    beside = sorted((gone & came) - {name})
    same = [
        name
        for name in beside[:MOST]
        if _same(old, f"{symbol.module}.{name}", new, f"{place.module}.{name}")
    ]
    if len(same) >= SEVERAL or any(_is_telling(old, f"{symbol.module}.{n}") for n in same):
        return "users or neighbours follow"
    return "nobody follows"


def _goes_only(new: FollowingResolver, path: str, there: str) -> bool:
    """Tell whether a user's name leads to one place, whatever the guards say."""
    found = new.resolve(path)
    return isinstance(found, Symbol) and not elsewhere(found) - {there}


def _is_telling(reader: FollowingResolver, path: str) -> bool:
    """Tell whether a neighbour is more than a line or two, which are alike in many places."""
    return len((reader.text(path) or "").splitlines()) >= LINES


def _same(old: FollowingResolver, path: str, new: FollowingResolver, there: str) -> bool:
    """Tell whether a neighbour is the same: a common name alone may stand anywhere."""
    one, other = old.resolve(path), new.resolve(there)
    if not isinstance(one, Symbol) or not isinstance(other, Symbol):
        return False
    return bool(one.fingerprint) and one.fingerprint == other.fingerprint


def _definitions(reader: FollowingResolver, module: str) -> Iterator[str]:
    """Yield the names that a module defines at its top."""
    table = reader.table(module)
    if table is not None:
        for name, bound in table.scope.bindings.items():
            if any(item.kind in _DEFINED for item in bound):
                yield name

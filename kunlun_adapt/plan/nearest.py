"""Which of several version ranges lies nearest to a release that none of them holds for."""

from __future__ import annotations

from collections.abc import Sequence

from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version

_FLOORS = (">=", ">", "==", "~=")
_CEILINGS = ("<", "<=", "==")


def nearest_range(ranges: Sequence[str], release: str) -> int | None:
    """Return the index of the range that lies nearest below the release, else nearest above.

    So a release that is older than all ranges gets the oldest, a newer one the newest, and one in a
    gap the lower neighbour. Returns None where there are no ranges.
    """
    here = Version(release)
    below: list[tuple[Version, int]] = []
    above: list[tuple[Version, int]] = []
    for index, specifier in enumerate(ranges):
        floor, ceiling = floor_of(specifier), _ceiling_of(specifier)
        if floor is not None and floor > here:
            above.append((floor, index))
        else:
            below.append((ceiling if ceiling is not None else here, index))
    if below:
        return max(below, key=lambda item: (item[0], -item[1]))[1]
    return min(above)[1] if above else None


def nearest_known(ranges: Sequence[str], release: str, claim: str) -> int | None:
    """Return the nearest range, but none where the release is known to do without.

    So it is with one that is older than all ranges, unless they begin with the map's claim: then
    nobody has looked at what is older.
    """
    index = nearest_range(ranges, release)
    if index is None:
        return None
    oldest = floor_of(ranges[index])
    without = oldest is not None and oldest > Version(release) and oldest != floor_of(claim)
    return None if without else index


def floor_of(specifier: str) -> Version | None:
    """Return the version below which a range holds for nothing, None where it has no such end."""
    return max(_versions(specifier, _FLOORS), default=None)


def _ceiling_of(specifier: str) -> Version | None:
    return min(_versions(specifier, _CEILINGS), default=None)


def _versions(specifier: str, operators: Sequence[str]) -> list[Version]:
    found = []
    for part in SpecifierSet(specifier):
        if part.operator in operators:
            try:
                found.append(Version(part.version.removesuffix(".*")))
            except InvalidVersion:
                continue
    return found

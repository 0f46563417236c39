"""The releases that a range can be tried on, and whether a range holds for any at all."""

from __future__ import annotations

import re
from collections.abc import Iterable

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from kunlun_adapt.documents import in_range

POST_RELEASES = 3
"""Upstream has published post releases 0.5.12.post1, 0.5.13.post1 and 0.5.15.post1 so far."""

MICROS = 60


def known_releases(claim: str, given: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the releases inside a claim, oldest first: `given`, and all that may exist.

    The generated ones have the major and minor numbers that the claim names.
    """
    minors = {v.release[:2] for v in bounds(claim)} or {(0, 5)}
    made = {
        f"{'.'.join(map(str, minor))}.{micro}{post}"
        for minor in minors
        for micro in range(MICROS)
        for post in ("", *(f".post{n}" for n in range(1, POST_RELEASES + 1)))
    }
    inside = {Version(text) for text in {*made, *given} if in_range(claim, text)}
    return tuple(str(version) for version in sorted(inside))


def bounds(specifier: str) -> list[Version]:
    """Return the versions that a range names, lowest first."""
    return sorted(Version(re.sub(r"\.\*$", "", s.version)) for s in SpecifierSet(specifier))


def is_empty(specifier: str) -> bool:
    """Tell whether no version at all lies in the range.

    The bounds of the range cut the versions into pieces; one version of each piece is tried.
    """
    probes = [Version("0"), Version("99999")]
    for version in bounds(specifier):
        release = ".".join(map(str, version.release))
        # 0.5.17 < 0.5.17.0.1 < 0.5.18, and `>0.5.17` would not take 0.5.17.post1.
        probes += [version, Version(f"{release}.0.1"), Version(f"{release}.dev0")]
    return not any(SpecifierSet(specifier).contains(p, prereleases=True) for p in probes)


def spans(releases: Iterable[str]) -> str:
    """Name some releases in words: the only one, or the first and the last."""
    listed = list(releases)
    return listed[0] if len(listed) == 1 else f"{listed[0]} to {listed[-1]}"

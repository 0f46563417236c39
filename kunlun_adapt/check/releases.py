"""The releases that a range can be tried on, and how ranges are spoken of."""

from __future__ import annotations

import re
from collections.abc import Iterable

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from kunlun_adapt.documents import in_range
from kunlun_adapt.upstream.git_version import AFTER_A_RELEASE

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
    """Return the versions that a range names, lowest first; `===` names texts, not versions."""
    ordered = [s for s in SpecifierSet(specifier) if s.operator != "==="]
    return sorted(Version(s.version.removesuffix(".*")) for s in ordered)


def following(release: str) -> str:
    """Return the release that comes after one: the next of its last number."""
    *head, last = Version(release).release
    return ".".join(map(str, [*head, last + 1]))


def release_at(version: str) -> str:
    """Return the release at which a range begins for what has a version.

    A range begins at a release only: for a commit after one it is the one to come.
    """
    whole = Version(version)
    after = re.fullmatch(AFTER_A_RELEASE, whole.local or "")
    return following(version) if after else whole.public


def spans(releases: Iterable[str]) -> str:
    """Name some releases in words: the only one, or the first and the last."""
    listed = list(releases)
    return listed[0] if len(listed) == 1 else f"{listed[0]} to {listed[-1]}"

"""The releases that `retarget` looks at: the claimed ones, and those on the way to the new one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from packaging.version import Version

from kunlun_adapt.check.releases import bounds, following
from kunlun_adapt.documents import in_range
from kunlun_adapt.upstream import Lock, ReleaseError
from kunlun_adapt.upstream.following import FollowingResolver

Opened = Callable[[str], FollowingResolver]
"""Opens a release by its version. Raises ReleaseError where it cannot be had."""


@dataclass(frozen=True, slots=True)
class Releases:
    """What can be looked at: `known` are claimed and locked; `missed` could not be had."""

    known: tuple[FollowingResolver, ...]
    between: tuple[FollowingResolver, ...]
    missed: tuple[str, ...]


def releases_for(claim: str, lock: Lock, new: Version, opened: Opened) -> Releases:
    """Open the claimed releases and those between them and the new one, oldest first.

    Upstream counts its last number up by one, so what lies between is known by its number.
    """
    missed: list[str] = []

    def had(versions: Iterable[str]) -> list[FollowingResolver]:
        found = []
        for version in versions:
            try:
                found.append(opened(version))
            except ReleaseError:
                missed.append(version)
        return found

    asked = [v for v in lock.releases if in_range(claim, v) and Version(v) != new]
    known = had(asked or _named(claim, new))
    start = min((Version(r.version) for r in known), default=new)
    held = {Version(r.version) for r in known}
    steps: list[str] = []
    step = start
    while step < new and len(steps) < 100:
        if step not in held:
            steps.append(str(step))
        step = Version(following(str(step)))
    return Releases(tuple(known), tuple(had(steps)), tuple(missed))


def _named(claim: str, new: Version) -> list[str]:
    """Return the releases that a claim names itself, for a workspace without a lock."""
    return [str(v) for v in bounds(claim) if in_range(claim, str(v)) and v != new]

"""Ranges that take a further release in, end before one, or begin with one."""

from __future__ import annotations

from collections.abc import Iterable

from packaging.specifiers import Specifier, SpecifierSet
from packaging.version import Version

from kunlun_adapt.check.releases import following
from kunlun_adapt.documents import in_range
from kunlun_adapt.documents.fields import ANY
from kunlun_adapt.plan.nearest import floor_of

_CEILINGS = ("<", "<=")
_FLOORS = (">=", ">")


def widened(own: str, release: str, others: Iterable[str] = ()) -> str:
    """Return a range with a release taken in that lies beyond it, and nothing of the `others`."""
    if in_range(own, release):
        return own
    here, parts = Version(release), [*SpecifierSet(own)]
    exact = [s for s in parts if s.operator in ("==", "===", "~=")]
    if exact:
        low = min(Version(s.version.removesuffix(".*")) for s in exact)
        parts = [Specifier(f">={low}"), Specifier(f"<{following(str(low))}")]
    floors = [s for s in parts if s.operator in _FLOORS]
    ceilings = [s for s in parts if s.operator in _CEILINGS]
    rest = [s for s in parts if s not in floors and s not in ceilings and not s.contains(release)]
    kept = [s for s in parts if s not in floors and s not in ceilings and s not in rest]
    if any(not s.contains(release, prereleases=True) for s in floors):
        floors = [Specifier(f">={here}")]
    if any(not s.contains(release, prereleases=True) for s in ceilings):
        ceilings = [Specifier(f"<{_before(release, others)}")]
    return joined([*floors, *ceilings, *kept])


def ended(own: str, release: str) -> str:
    """Return the part of a range that lies before a release."""
    parts = [s for s in SpecifierSet(own) if str(s) != ANY]
    if any(s.operator in ("==", "===") for s in parts):
        return own
    kept = [
        s for s in parts if s.operator not in _CEILINGS or Version(s.version) < Version(release)
    ]
    if not any(s.operator in _CEILINGS for s in kept):
        kept.append(Specifier(f"<{release}"))
    return joined(kept)


def beginning(own: str, low: str, release: str, others: Iterable[str] = ()) -> str:
    """Return the range of what takes the place of an entry from `low` on and holds for a release.

    It stays open at its end where the entry's own was; else it ends behind the release, and before
    the `others` in any case.
    """
    parts = [*SpecifierSet(own)]
    ceilings = [s for s in parts if s.operator in _CEILINGS]
    closed = bool(ceilings) or any(s.operator in ("==", "===", "~=") for s in parts)
    start = Specifier(f">={low}")
    if ceilings and all(s.contains(release, prereleases=True) for s in ceilings):
        return joined([start, *ceilings])
    after = [v for text in others if (v := floor_of(text)) is not None and v > Version(release)]
    if not closed and not after:
        return str(start)
    return joined([start, Specifier(f"<{_before(release, others)}")])


def joined(parts: Iterable[Specifier]) -> str:
    """Return a range as people write it: where it begins, then where it ends."""
    order = {">=": 0, ">": 0, "<": 1, "<=": 1}
    listed = sorted(dict.fromkeys(parts), key=lambda s: (order.get(s.operator, 2), str(s)))
    return ",".join(str(s) for s in listed) or ANY


def _before(release: str, others: Iterable[str]) -> str:
    """Return where a range ends that takes a release in: behind it, and before other ranges."""
    floors = [v for text in others if (v := floor_of(text)) is not None and v > Version(release)]
    return str(min([Version(following(release)), *floors]))

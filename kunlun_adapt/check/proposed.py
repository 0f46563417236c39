"""The releases that a suggestion speaks of: a range around the one checked, by all that is known.

Only some releases are known: the one that is checked, those in the lock, and, for a release outside
the claims, where the claims begin and end. What was found in one is proposed up to the next.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from packaging.specifiers import Specifier, SpecifierSet
from packaging.version import Version

from kunlun_adapt.check.context import Context
from kunlun_adapt.check.ranges import ranged
from kunlun_adapt.check.releases import bounds, known_releases, release_at
from kunlun_adapt.check.wording import flow
from kunlun_adapt.diagnostics import ItemChange, Mend
from kunlun_adapt.documents import in_range

_FLOORS = (">=", ">")
_CEILINGS = ("<", "<=")


@dataclass(frozen=True, slots=True)
class Proposed:
    """The releases from `low` on and before `high`; one of the two may be open."""

    low: Version | None
    high: Version | None

    @property
    def text(self) -> str:
        return ",".join([*self._from, *self._before])

    def within(self, own: str) -> str:
        """Return the part of this that lies in another range."""
        return _narrowed(own, *self._from, *self._before)

    def rest_of(self, own: str, releases: Iterable[str]) -> list[str]:
        """Return what another range keeps where this is taken from it, before and after.

        A part that holds for none of `releases` is left out.
        """
        parts = [f"<{self.low}"] if self.low else []
        parts += [f">={self.high}"] if self.high else []
        kept = [_narrowed(own, part) for part in parts]
        given = list(releases)
        return [text for text in kept if any(in_range(text, release) for release in given)]

    @property
    def _from(self) -> list[str]:
        return [f">={self.low}"] if self.low else []

    @property
    def _before(self) -> list[str]:
        return [f"<{self.high}"] if self.high else []


def around(
    context: Context,
    taken: Iterable[str] = (),
    *,
    known: Iterable[str] | None = None,
    fill: bool = False,
) -> Proposed:
    """Return the range around the checked release for which what was found there is to be stated.

    The newest known release gets `>=` itself, the oldest `<` the next, any other both. The range
    meets none of those in `taken`, and starts right after them where it is to `fill` a gap.
    A commit after a release gets the one to come.
    `known` are other releases in which the matter is known to be different; else the locked ones.
    """
    here = Version(context.floor)
    others = _others(context, known) - {here}
    taken = list(taken)
    releases = sorted({Version(r) for r in _possible(context, taken)} | others | {here})
    below = [v for v in releases if v < here]
    free: Version | None = None
    low: Version | None = None
    for version in reversed(below):
        if _holds(taken, version):
            low = free if fill and free is not None else here
            break
        if version in others:
            low = here
            break
        free = version
    above = (v for v in releases if v > here)
    high = next((v for v in above if v in others or _holds(taken, v)), None)
    return Proposed(here if low is None and high is None else low, high)


def leave_out(context: Context, binding: str | None) -> Mend:
    """Return the edit that leaves a hook or a place of an operator out around the release.

    Ranges of the binding that hold elsewhere stay as they are; a gap between them is filled.
    Without a binding it is for one that has no ranges of its own.
    """
    groups = ranged(context) if binding is not None else ()
    group = next((g for g in groups if g.binding == binding), None)
    ranges = [text for text, _ in group.ranges] if group else []
    elsewhere = [text for text in ranges if not in_range(text, context.release)]
    excluded = list(group.excluded) if group else []
    gap = len(elsewhere) == len(ranges)
    range_ = around(context, [*elsewhere, *excluded], fill=gap and not context.beyond_claims).text
    entry = {"sglang": range_, "why": "…"}
    said = flow(entry)
    text = f"add {said} to its `excluded`" if excluded else f"`excluded: [{said}]`"
    if group is None or group.leaves_out is None:
        return Mend(text)
    raw = group.document.raw
    change = ItemChange(raw.file, raw.index, group.leaves_out, entry)
    return Mend(text, "left_out", (change,), ("why",))


def possible(context: Context, *ranges: str) -> list[str]:
    """Return the releases that may exist as far as it can be known, oldest first."""
    return [str(version) for version in sorted(Version(r) for r in _possible(context, ranges))]


def _possible(context: Context, ranges: Sequence[str]) -> set[str]:
    locked = context.lock.releases if context.lock else ()
    found = set(known_releases(context.map.sglang, locked)) | {*map(release_at, locked)}
    found.add(context.floor)
    for text in ranges:
        if not _is_open(text):
            found |= {str(version) for version in bounds(text)}
            found |= set(known_releases(text))
    return found


def _is_open(text: str) -> bool:
    """Tell whether a range says nothing, as `>=0` does."""
    return all(version == Version("0") for version in bounds(text))


def _others(context: Context, known: Iterable[str] | None) -> set[Version]:
    if known is None:
        known = context.lock.releases if context.lock else ()
    others = {Version(release_at(text)) for text in known}
    # What the claims hold for was verified there, and this release lies outside.
    return others if context.claimed else others | set(bounds(context.map.sglang))


def _holds(ranges: Iterable[str], version: Version) -> bool:
    return any(in_range(text, str(version)) for text in ranges)


def _narrowed(own: str, *parts: str) -> str:
    """Return the range in which all hold, without the bounds that others make needless."""
    given = [s for s in SpecifierSet(",".join([own, *parts])) if str(s) != ">=0"]
    kept = [
        *sorted((s for s in given if s.operator in _FLOORS), key=_floor)[-1:],
        *sorted((s for s in given if s.operator in _CEILINGS), key=_ceiling)[:1],
        *sorted((s for s in given if s.operator not in (*_FLOORS, *_CEILINGS)), key=str),
    ]
    return ",".join(str(s) for s in kept) or own


def _floor(bound: Specifier) -> tuple[Version, bool]:
    return Version(bound.version), bound.operator == ">"


def _ceiling(bound: Specifier) -> tuple[Version, bool]:
    return Version(bound.version), bound.operator == "<="

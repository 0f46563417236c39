"""From which release on an entry is otherwise, and the ranges that follow from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from packaging.version import Version

from kunlun_adapt.check import Context
from kunlun_adapt.documents import in_range
from kunlun_adapt.evolve.retarget.groups import Group
from kunlun_adapt.evolve.retarget.holding import fitted, holds
from kunlun_adapt.evolve.retarget.ranges import beginning, ended, widened
from kunlun_adapt.plan.nearest import floor_of

ContextOf = Callable[[str], Context]
"""Returns what a release is looked at with, by its version."""


@dataclass(frozen=True, slots=True)
class Ranges:
    """The range of the entry that is there, and that of a new one after it, None without one.

    `between` are further entries on the way, each with its range and its other values; `gaps` are
    releases for which none of all these holds.
    """

    old: str
    new: str | None
    gaps: tuple[str, ...] = ()
    between: tuple[tuple[str, Mapping[str, Any]], ...] = ()


def place_entry(
    group: Group,
    values: Mapping[str, Any],
    context_of: ContextOf,
    forms: Sequence[Mapping[str, Any]] = (),
) -> Ranges | None:
    """Return the ranges with which a group holds for the new release; None where it does so now.

    `forms` are other values that the entry may have on the way.
    """
    release = group.way[-1].version
    if not values and in_range(group.own, release):
        return None
    way = [r.version for r in group.way[1:-1]]
    way = [v for v in way if not _others(group, v)]
    as_it_is = [v for v in way if holds(context_of(v), group.entry, group.entry.stated)]
    if not values:
        return _longer(group, release, way, as_it_is)
    changed = group.entry.with_values(values)
    low = release
    for version in reversed(way):
        if not holds(context_of(version), group.entry, changed):
            break
        low = version
    before = way[: way.index(low)] if low in way else way
    gaps = tuple(v for v in before if v not in as_it_is)
    # It goes on as it is up to the first release for which it does not hold.
    end = gaps[0] if gaps else low
    kept = before[: before.index(end)] if gaps else before
    own = widened(group.own, kept[-1]) if kept else group.own
    others = (*group.others, *group.excluded)
    forms = (*forms, values)
    found = {v: _form(group, forms, context_of(v)) for v in (before[len(kept) :] if gaps else ())}
    stretches = _stretches(found, low)
    gaps = tuple(v for v, form in found.items() if form is None)
    new = beginning(group.own, low, release, others)
    return Ranges(ended(own, end), new, gaps, stretches)


def place_before(group: Group, out: str, context_of: ContextOf) -> Ranges | None:
    """Return the range of an entry that is left out in the range `out`; None where it stays.

    It reaches up to there, as far as it was followed and holds: what lies between would be left
    without an entry and without a reason.
    """
    low = floor_of(out)
    assert low is not None, "what is left out is so from a release on"
    way = [r.version for r in group.way[1:-1] if Version(r.version) < low]
    way = [v for v in way if not _others(group, v)]
    as_it_is = [v for v in way if holds(context_of(v), group.entry, group.entry.stated)]
    kept = [*takewhile(as_it_is.__contains__, way)]
    own = widened(group.own, kept[-1], (*group.others, *group.excluded)) if kept else group.own
    gaps = tuple(v for v in way if v not in as_it_is or not in_range(own, v))
    return None if own == group.own and not gaps else Ranges(own, None, gaps)


def _form(
    group: Group, forms: Sequence[Mapping[str, Any]], context: Context
) -> Mapping[str, Any] | None:
    """Return the first of some values with which the entry holds, {} where it does as it is."""
    for form in ({}, *forms):
        whole = group.entry.with_values(form)
        if holds(context, group.entry, whole):
            return form
        fewer = fitted(context, group.entry, whole)
        if form and fewer != whole and holds(context, group.entry, fewer):
            return {**form, "ignores": fewer.get("ignores")}
    return None


def _stretches(
    found: Mapping[str, Mapping[str, Any] | None], end: str
) -> tuple[tuple[str, Mapping[str, Any]], ...]:
    """Return the entries on the way: neighbouring releases with the same values share one."""
    made: list[tuple[str, Mapping[str, Any]]] = []
    versions = [*found, end]
    start = 0
    for i, version in enumerate(found):
        form = found[version]
        if i + 1 < len(found) and found[versions[i + 1]] == form:
            continue
        if form is not None:
            made.append((f">={versions[start]},<{versions[i + 1]}", form))
        start = i + 1
    return tuple(made)


def _longer(group: Group, release: str, way: list[str], as_it_is: list[str]) -> Ranges:
    """Return the longer range of an entry that stays as it is, or that of its copy after a gap."""
    others = (*group.others, *group.excluded)
    gaps = tuple(v for v in way if v not in as_it_is)
    if not gaps:
        return Ranges(widened(group.own, release, others), None)
    low = next((v for v in way if v > gaps[-1]), release)
    return Ranges(group.own, beginning(group.own, low, release, others), gaps)


def _others(group: Group, version: str) -> bool:
    """Tell whether another entry, or an exclusion, speaks for a release on the way."""
    return any(in_range(text, version) for text in (*group.others, *group.excluded))

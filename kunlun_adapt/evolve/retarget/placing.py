"""From which release on an entry is otherwise, and the ranges that follow from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kunlun_adapt.check import Context
from kunlun_adapt.documents import in_range
from kunlun_adapt.evolve.retarget.groups import Group
from kunlun_adapt.evolve.retarget.holding import holds
from kunlun_adapt.evolve.retarget.ranges import beginning, ended, widened

ContextOf = Callable[[str], Context]
"""Returns what a release is looked at with, by its version."""


@dataclass(frozen=True, slots=True)
class Ranges:
    """The range of the entry that is there, None where it goes, and that of a new one after it.

    `gaps` are releases on the way for which neither holds.
    """

    old: str | None
    new: str | None
    gaps: tuple[str, ...] = ()


def place_entry(group: Group, values: Mapping[str, Any], context_of: ContextOf) -> Ranges | None:
    """Return the ranges with which a group holds for the new release; None where it does so now."""
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
    return Ranges(ended(own, end), beginning(group.own, low, release, others), gaps)


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

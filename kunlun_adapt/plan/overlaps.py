"""Tiers whose ranges cross: calls that either was meant to serve, of which the upper one takes all.

A ladder of tiers is meant to overlap: what the special tier does not take falls to the wider one
below it. What is reported here is another thing: on something that both tiers read, each takes
values that the other does not, and some values are taken by both. That is what two neighbouring
ranges look like of which one was moved and the other was not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kunlun_adapt.plan.axes import Axis
from kunlun_adapt.plan.conditions import Condition
from kunlun_adapt.plan.tiers import TierTable, axis_of


@dataclass(frozen=True, slots=True)
class Overlap:
    """Two tiers that cross on `subject`; `value` is one that both take."""

    upper: str
    lower: str
    subject: str
    value: Any


def overlaps(table: TierTable, last_resorts: frozenset[str]) -> tuple[Overlap, ...]:
    """Return the tiers whose ranges cross, each pair once; last resorts take what is left over."""
    axes = {s.text: axis_of(table, s) for s in table.subjects()}
    tiers = [(name, cs) for name, cs in table.tiers if name not in last_resorts]
    found = []
    for index, (upper, above) in enumerate(tiers):
        for lower, below in tiers[index + 1 :]:
            crossing = _crossing(axes, above, below)
            if crossing is not None and _together(table, axes, above, below):
                found.append(Overlap(upper, lower, *crossing))
    return tuple(found)


def _crossing(
    axes: Mapping[str, Axis], above: tuple[Condition, ...], below: tuple[Condition, ...]
) -> tuple[str, Any] | None:
    """Return a subject on which each side takes values of its own, and a value that both take."""
    tests = {c.subject.text: c.test for c in below}
    for condition in above:
        text = condition.subject.text
        other = tests.get(text)
        if other is None:
            continue
        took = [(condition.test.holds(v), other.holds(v), v) for v in axes[text].values]
        kinds = {(one, two) for one, two, _ in took}
        if {(True, True), (True, False), (False, True)} <= kinds:
            return text, next(v for one, two, v in took if one and two)
    return None


def _together(
    table: TierTable,
    axes: Mapping[str, Axis],
    above: tuple[Condition, ...],
    below: tuple[Condition, ...],
) -> bool:
    """Tell whether one call can meet both tiers.

    An argument is absent in all that is read of it, or in none.
    """
    tests: dict[str, list[Condition]] = {}
    for condition in (*above, *below):
        tests.setdefault(condition.subject.text, []).append(condition)
    states: dict[str, set[bool]] = {}
    for text, conditions in tests.items():
        met = [v for v in axes[text].values if all(c.test.holds(v) for c in conditions)]
        if not met:
            return False
        root = text.split(".")[0]
        if root in table.params:
            absent = {value is None for value in met}
            states[root] = states.get(root, {True, False}) & absent
            if not states[root]:
                return False
    return True

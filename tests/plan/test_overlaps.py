"""Tiers whose ranges cross, against trying every call."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kunlun_adapt.plan import TierTable
from kunlun_adapt.plan.overlaps import overlaps
from tests.plan.test_tiers import PARAMS, WHEN, calls, table

NONE: frozenset[str] = frozenset()


def crossed(parsed: TierTable, upper: int, lower: int) -> bool:
    """Try it: one call meets both, and on a subject of both each takes values of its own."""
    above, below = ({c.subject.text: c for c in parsed.tiers[i][1]} for i in (upper, lower))
    every = list(calls(parsed))
    both = any(all(c.holds(call) for c in (*above.values(), *below.values())) for call in every)
    return both and any(
        {(True, True), (True, False), (False, True)}
        <= {(above[text].holds(call), below[text].holds(call)) for call in every}
        for text in above.keys() & below.keys()
    )


@settings(max_examples=80, deadline=None)
@example([{"n": "<= -1"}, {"n": "% 3 == 0"}])
@given(st.lists(WHEN, min_size=2, max_size=3))
def test_what_crosses_is_found_and_nothing_else(whens: list[dict[str, Any]]) -> None:
    parsed = table(PARAMS, *whens)
    pairs = [(i, j) for i in range(len(whens)) for j in range(i + 1, len(whens))]
    wanted = {(f"t{i}", f"t{j}") for i, j in pairs if crossed(parsed, i, j)}
    assert {(found.upper, found.lower) for found in overlaps(parsed, NONE)} == wanted


@settings(max_examples=60, deadline=None)
@given(st.lists(WHEN, min_size=2, max_size=3))
def test_the_value_that_is_shown_is_taken_by_both(whens: list[dict[str, Any]]) -> None:
    parsed = table(PARAMS, *whens)
    tiers = dict(parsed.tiers)
    for found in overlaps(parsed, NONE):
        for name in (found.upper, found.lower):
            (condition,) = (c for c in tiers[name] if c.subject.text == found.subject)
            assert condition.test.holds(found.value)


@pytest.mark.parametrize("quiet", [{"t0"}, {"t1"}])
def test_a_last_resort_crosses_nothing(quiet: set[str]) -> None:
    parsed = table({"n": "int"}, {"n": "<= 8"}, {"n": ">= 8"})
    assert len(overlaps(parsed, NONE)) == 1
    assert overlaps(parsed, frozenset(quiet)) == ()

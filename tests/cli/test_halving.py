"""The search by halving, against every answer that a command can give."""

from __future__ import annotations

import itertools
import math

import pytest

from kunlun_adapt.cli.halving import smallest


@pytest.mark.parametrize("count", [1, 2, 3, 7, 64, 300])
def test_one_culprit_is_found_in_a_few_runs(count: int) -> None:
    things = list(range(count))
    for culprit in {0, count // 3, count - 1}:
        asked: list[tuple[int, ...]] = []

        def passes(part: tuple[int, ...], culprit: int = culprit) -> bool:
            asked.append(part)  # noqa: B023 -- called in this turn only
            return culprit in part

        assert smallest(things, passes) == (culprit,)
        assert len(asked) <= 2 * math.ceil(math.log2(count)) if count > 1 else not asked
        assert len(asked) == len(set(asked)), "no run twice"


@pytest.mark.parametrize("culprits", list(itertools.combinations(range(9), 3)))
def test_several_culprits_are_found_together(culprits: tuple[int, ...]) -> None:
    assert smallest(range(9), lambda part: set(culprits) <= set(part)) == culprits


def test_what_is_found_passes_and_no_part_of_it_does() -> None:
    """Commands that also fail for want of something else, as servers without a binding do."""

    def passes(part: tuple[int, ...]) -> bool:
        # 3 or 11 has to be off; 5 works only with 6; all off is fine.
        off = set(part)
        return bool(off & {3, 11}) and ((5 in off) or (6 not in off))

    found = smallest(range(16), passes)
    assert passes(found)
    assert all(not passes(tuple(t for t in found if t != one)) for one in found)

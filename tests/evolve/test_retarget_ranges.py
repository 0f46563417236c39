"""Ranges are split and made longer, and never meet another one."""

from __future__ import annotations

import pytest

from kunlun_adapt.documents import in_range
from kunlun_adapt.evolve.retarget.ranges import beginning, ended, following, widened
from kunlun_adapt.evolve.retarget.rates import Rate, coarse


@pytest.mark.parametrize(
    ("own", "release", "others", "wanted"),
    [
        (">=0.5.19,<0.5.20", "0.5.23", (), ">=0.5.19,<0.5.24"),
        (">=0.5.17", "0.5.23", (), ">=0.5.17"),
        ("==0.5.17", "0.5.19", (), ">=0.5.17,<0.5.20"),
        ("<0.5.20", "0.5.21", (), "<0.5.22"),
        ("<=0.5.19", "0.5.21", (), "<0.5.22"),
        (">=0.5.19,<0.5.20", "0.5.17", (), ">=0.5.17,<0.5.20"),
        (">=0.5.17,<0.5.20", "0.5.21", (">=0.5.22",), ">=0.5.17,<0.5.22"),
        (">=0.5.17,!=0.5.18,<0.5.20", "0.5.20", (), ">=0.5.17,<0.5.21,!=0.5.18"),
        (">=0", "0.5.20", (), ">=0"),
        (">=0.5.12.post1,<0.5.13", "0.5.13.post1", (), ">=0.5.12.post1,<0.5.14"),
    ],
)
def test_a_longer_range(own: str, release: str, others: tuple[str, ...], wanted: str) -> None:
    found = widened(own, release, others)
    assert found == wanted
    assert in_range(found, release)
    assert not any(in_range(found, "0.5.22") for text in others if in_range(text, "0.5.22"))


@pytest.mark.parametrize(
    ("own", "release", "wanted"),
    [
        (">=0.5.17", "0.5.20", ">=0.5.17,<0.5.20"),
        (">=0.5.17,<0.5.19", "0.5.20", ">=0.5.17,<0.5.19"),
        (">=0.5.17,<0.5.24", "0.5.20", ">=0.5.17,<0.5.20"),
        (">=0", "0.5.20", "<0.5.20"),
        ("==0.5.17", "0.5.20", "==0.5.17"),
    ],
)
def test_an_end(own: str, release: str, wanted: str) -> None:
    assert ended(own, release) == wanted
    assert not in_range(wanted, release)


@pytest.mark.parametrize(
    ("own", "low", "release", "others", "wanted"),
    [
        (">=0.5.17", "0.5.20", "0.5.23", (), ">=0.5.20"),
        (">=0.5.19,<0.5.20", "0.5.21", "0.5.23", (), ">=0.5.21,<0.5.24"),
        (">=0.5.17,<0.6", "0.5.21", "0.5.23", (), ">=0.5.21,<0.6"),
        (">=0.5.17", "0.5.20", "0.5.20", (">=0.5.22",), ">=0.5.20,<0.5.21"),
        ("==0.5.17", "0.5.18", "0.5.19", (), ">=0.5.18,<0.5.20"),
    ],
)
def test_a_beginning(
    own: str, low: str, release: str, others: tuple[str, ...], wanted: str
) -> None:
    assert beginning(own, low, release, others) == wanted


def test_what_follows_a_release() -> None:
    assert following("0.5.23") == "0.5.24"
    assert following("0.5.12.post1") == "0.5.13"


def test_a_rate_counts_on_what_enough_cases_say() -> None:
    assert not Rate("a", 20, 0).is_certain
    assert Rate("a", 200, 0).is_certain
    assert not Rate("a", 2000, 1).is_certain  # one wrong relocation is worse than none
    assert Rate("a", 9, 1).is_likely
    assert not Rate("a", 0, 0).is_likely
    assert Rate("a", 0, 0).low == 0.0
    assert Rate("a", 99, 1).low < 0.99


def test_kinds_of_cases_are_put_together_where_the_body_tells_more() -> None:
    assert coarse("same name; same body; more parameters; nobody follows") == (
        "same name; same body; nobody follows"
    )
    assert coarse("same name; small body; same parameters; nobody follows") == (
        "same name; small body; same parameters; nobody follows"
    )
    assert coarse("imported from there before") == "imported from there before"

"""What the Feature Diff says of two values."""

from __future__ import annotations

import pytest

from kunlun_adapt.evolve.diff.values import SHORT, value_change

LONG = [f"backend_{number}" for number in range(30)]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("['a', 'b']", "['a', 'c']", "adds 'c'; no longer 'b'"),
        ("('a', 'b')", "('b', 'a')", "another order"),
        ("('a',)", "('a', 'a')", "adds 'a'"),
        ("{'a', 'b'}", "{'b', 'c', 'a'}", "adds 'c'"),
        ("[1]", "[1, 2, 3, 4, 5, 6]", "adds 2, 3, 4, 5 and 1 more"),
        ("['a', *REST]", "['a']", "no longer *REST"),
        ("{'a': 1, 'b': 2}", "{'a': 1, 'c': 3}", "adds 'c': 3; no longer 'b': 2"),
        ("{'a': 1, 'b': [2]}", "{'a': 4, 'b': [2, 3]}", "'a': 4, was 1, 'b': adds 3"),
        ("{'a': 1, 'b': 2}", "{'b': 2, 'a': 1}", "another order"),
        ("{**BASE}", "{**BASE, **MORE}", "adds **MORE: MORE"),
        ("frozenset({'a'})", "frozenset({'a', 'b'})", "adds 'b'"),
        ("d(lambda: f, {'a': g})", "d(lambda: f, {'a': g, 'x': h})", "adds 'x': h"),
        ("d({'a': 1}, n=1)", "d({'a': 2}, n=2)", "d({'a': 2}, n=2), was d({'a': 1}, n=1)"),
        ("['a']", "('a',)", "('a',), was ['a']"),
        ("1", "2", "2, was 1"),
        ("[1", "[2", "[2, was [1"),
        (None, "['a']", "['a'], was none"),
    ],
)
def test_what_came_and_went(old: str | None, new: str, said: str) -> None:
    assert value_change(old, new) == said


def test_a_difference_beyond_what_is_shown_is_told() -> None:
    assert value_change(repr(LONG), repr([*LONG, "qsa"])) == "adds 'qsa'"
    assert value_change(repr([*LONG, "nsa"]), repr(LONG)) == "no longer 'nsa'"


def test_other_long_values_are_cut_around_their_first_difference() -> None:
    same, after = "x" * 400, "z" * 400
    said = value_change(f"f('{same}1{after}')", f"f('{same}2{after}')")
    now, was = said.split(", was ")
    assert "x2z" in now and "x1z" in was
    assert all(text.startswith("…") and text.endswith("…") for text in (now, was))
    assert all(len(text) <= SHORT + 1 for text in (now, was))

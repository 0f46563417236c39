from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kunlun_adapt.documents import OperatorRecipe, load_catalog
from kunlun_adapt.plan import ConditionError, TierTable, analyse, call_values, tier_table
from kunlun_adapt.plan import tiers as tiers_module
from kunlun_adapt.plan.guarded import present, unguarded

ROOT = Path(__file__).resolve().parents[2]
RECIPES = [d for d in load_catalog(ROOT).operators if d.model.status == "active"]


def recipe(
    params: dict[str, str],
    *whens: dict[str, Any],
    derive: dict[str, str] | None = None,
    dtypes: tuple[str, ...] = (),
) -> OperatorRecipe:
    return OperatorRecipe.model_validate(
        {
            "apiVersion": "kunlun-adapt/v1",
            "kind": "OperatorRecipe",
            "name": "op",
            "family": "f",
            "why": "w",
            "golden": "a:b",
            "params": params,
            "returns": "None",
            "capture": "safe",
            "serves": ["attention_backend"],
            "derive": derive or {},
            "kernels": [
                {"name": f"t{i}", "impl": "a:b", "when": when} for i, when in enumerate(whens)
            ],
            "otherwise": "error",
            "precision": {d: {} for d in dtypes},
        }
    )


def table(*args: Any, **kwargs: Any) -> TierTable:
    return tier_table(recipe(*args, **kwargs))


# -- against brute force ---------------------------------------------------------------------

INTEGERS = [*range(-80, 140), *(1 << shift for shift in range(8, 12))]
PARAMS = {"n": "int", "flag": "bool", "o": "int | None", "x": "Tensor[rows, d] | None"}
DOMAIN: dict[str, list[Any]] = {
    "n": INTEGERS,
    "flag": [True, False],
    "o": [None, *range(-3, 9)],
    "x": [None, 1, 2, 3, 4, 9],
}
N_TESTS = st.one_of(
    st.integers(-3, 20),
    st.lists(st.integers(-3, 20), min_size=1, max_size=3),
    st.builds(
        "{} {}".format, st.sampled_from(["<=", ">=", "<", ">", "==", "!="]), st.integers(-3, 20)
    ),
    st.sampled_from(["<= 2.5", "> 7.5", "-2..0.5", "== 3.0", "~ 4"]),
    st.tuples(st.integers(-3, 20), st.integers(0, 5)).map(lambda p: f"{p[0]}..{p[0] + p[1]}"),
    st.tuples(st.integers(1, 6), st.integers(0, 5)).map(lambda p: f"% {p[0]} == {p[1] % p[0]}"),
    st.just("power_of_two"),
)  # fmt: skip
SMALL = st.builds("{} {}".format, st.sampled_from(["<=", ">", "!="]), st.integers(1, 4))
WHEN = st.fixed_dictionaries(
    {},
    optional={
        "n": N_TESTS,
        "flag": st.booleans(),
        "o": SMALL | st.just("none") | st.just("present") | st.integers(0, 3),
        "x": st.sampled_from(["none", "present"]),
        "x.shape[0]": SMALL,
    },
)


def calls(parsed: TierTable) -> Iterator[dict[str, Any]]:
    """Every call of the small domain, as far as the tiers read it."""
    read = {s.root for s in parsed.subjects()}
    names = [n for n in PARAMS if n in read]
    for values in itertools.product(*(DOMAIN[n] for n in names)):
        call = dict(zip(names, values, strict=True))
        if "x" in call:
            call["x.shape[0]"] = call["x"]
        yield call


@settings(max_examples=120, deadline=None)
@given(st.lists(WHEN, min_size=1, max_size=4))
def test_the_analysis_agrees_with_trying_every_call(whens: list[dict[str, Any]]) -> None:
    parsed = table(PARAMS, *whens)
    served = {parsed.serving(call) for call in calls(parsed)}
    found = analyse(parsed)
    assert found.exact
    assert (found.gaps > 0) == (None in served)
    assert set(found.unreachable) == {n for n, _ in parsed.tiers} - served
    if found.example is not None:
        assert parsed.serving(found.example) is None


@dataclass(frozen=True)
class Rows:
    """A tensor of which conditions read the first dimension."""

    shape: tuple[int, ...]


@settings(max_examples=80, deadline=None)
@given(st.lists(WHEN, min_size=1, max_size=4), st.integers(1, 4))
def test_the_compiled_tiers_choose_what_the_table_chooses(
    whens: list[dict[str, Any]], ahead: int
) -> None:
    # Behind a tier that takes all calls without `x`, what is read of it needs no guard.
    parsed = table(PARAMS, {"x": "none"}, *whens, {"n": f"% {ahead} == 0"}, {"flag": True})
    assert unguarded(parsed) == []
    tiers = [
        (name, compile(" and ".join(c.expression() for c in cs) or "True", name, "eval"))
        for name, cs in parsed.tiers
    ]
    chooser = random.Random(ahead)
    for call in chooser.sample(list(calls(parsed)), 300):
        names = {n: call.get(n) for n in PARAMS}
        names["x"] = None if names["x"] is None else Rows((names["x"],))
        chosen = next((name for name, code in tiers if eval(code, {}, dict(names))), None)
        assert chosen == parsed.serving(call)


FLOATS = sorted({x / 4 for x in range(-30, 31)} | {v + e for v in (-1.5, 0.5, 2) for e in
                                                  (-1e-9, 1e-9, -1e-3, 1e-3)})  # fmt: skip
F_TESTS = st.one_of(
    st.builds("{} {}".format, st.sampled_from(["<=", ">=", "<", ">", "!="]),
              st.sampled_from([-1.5, 0.5, 0.75, 2])),
    st.sampled_from(["~ 0.5", "~ -1.5", "~ 2", "-1.5..0.5", "0.5..0.75", 0.5, [2, -1.5]]),
)  # fmt: skip


@settings(max_examples=80, deadline=None)
@given(st.lists(st.fixed_dictionaries({"f": F_TESTS}), min_size=1, max_size=4))
def test_floats_are_tried_at_and_between_all_bounds(whens: list[dict[str, Any]]) -> None:
    parsed = table({"f": "float"}, *whens)
    served = {parsed.serving({"f": value}) for value in FLOATS}
    found = analyse(parsed)
    assert (found.gaps > 0) == (None in served)
    assert set(found.unreachable) == {n for n, _ in parsed.tiers} - served


# -- cases that once went wrong ----------------------------------------------------------------


def test_a_gap_is_shown_with_a_call_that_falls_into_it() -> None:
    found = analyse(table({"n": "int"}, {"n": "<= 64"}, {"n": "66..100"}, {"n": "> 100"}))
    assert (found.gaps, found.example, found.unreachable) == (1, {"n": 65}, ())


def test_a_tier_behind_a_wider_one_is_unreachable() -> None:
    found = analyse(table({"n": "int"}, {"n": "<= 64"}, {"n": "1..64"}, {}))
    assert found.unreachable == ("t1",)
    assert found.gaps == 0


def test_values_far_out_are_reached() -> None:
    found = analyse(table({"n": "int"}, {"n": "<= 33554432"}, {"n": "> 99999999"}))
    assert found.unreachable == ()
    assert found.gaps == 1


def test_a_divisor_is_tried_beyond_every_bound() -> None:
    found = analyse(table({"n": "int"}, {"n": "<= 1000"}, {"n": "% 96 == 0"}, {"n": "> 0"}))
    assert (found.gaps, found.unreachable) == (0, ())


def test_powers_of_two_are_tried_between_bounds() -> None:
    whens = ({"n": "<= 100"}, {"n": "> 2000"}, {"n": "power_of_two"}, {})
    assert analyse(table({"n": "int"}, *whens)).unreachable == ()
    whens = ({"n": "<= 130"}, {"n": "> 250"}, {"n": "power_of_two"}, {})
    assert analyse(table({"n": "int"}, *whens)).unreachable == ("t2",)


def test_a_derived_flag_is_true_or_false() -> None:
    derive = {"wide": "x.shape[1] > 4096"}
    parsed = table({"x": "Tensor[r, d]"}, {"wide": True}, {"wide": False}, derive=derive)
    assert analyse(parsed).gaps == 0
    assert analyse(parsed).unreachable == ()


def test_a_derived_number_is_tried_below_zero_only_where_it_can_be() -> None:
    params = {"x": "Tensor[r, 8]", "y": "Tensor[r, d]"}
    whens = ({"d": ">= 0"},)
    for formula, gap in [
        ("x.shape[0] - y.shape[0]", True), ("x.shape[0] * y.shape[1]", False),
            ("x.ndim - 2", False),
        ("x.shape[1] - 8", False), ("x.shape[1] - 9", True), ("x.shape[0] // 4", False),
        ("x.shape[0] % 4 - 3", True), ("3 - x.shape[0] % 4", False), ("-x.shape[0]", True),
        ("x.shape[0] - y.shape[0] // 4", True), ("(x.shape[0] - 10) // y.shape[0] + 8", True),
        ("(x.shape[0] - 1) // y.shape[0]", False), ("(x.shape[0] > 3) + 0", False),
    ]:  # fmt: skip
        assert (analyse(table(params, *whens, derive={"d": formula})).gaps > 0) is gap, formula


def test_what_the_declaration_fixes_is_not_tried_otherwise() -> None:
    params = {"x": "Tensor[rows, 128] int32"}
    assert analyse(table(params, {"x.ndim": 2, "x.shape[1]": 128, "x.dtype": "int32"})).gaps == 0
    assert analyse(table(params, {"x.ndim": 3})).unreachable == ("t0",)
    assert analyse(table(params, {"x.shape[1]": "> 128"}, {})).unreachable == ("t0",)
    assert analyse(table(params, {"x.dtype": "float16"}, {})).unreachable == ("t0",)
    assert analyse(table({"x": "Tensor"}, {"x.ndim": "<= 3"})).gaps > 0


def test_only_declared_dtypes_can_be_gaps_but_all_named_ones_are_tried() -> None:
    params = {"x": "Tensor[rows]"}
    whens = ({"x.dtype": "int8", "x.shape[0]": "<= 8"}, {"x.dtype": ["float16", "bfloat16"]})
    found = analyse(table(params, *whens, dtypes=("float16", "bfloat16")))
    assert (found.gaps, found.unreachable) == (0, ())
    assert analyse(table(params, *whens, dtypes=("float16", "float32"))).gaps > 0
    assert analyse(table(params, {"x.dtype": "int32"}, dtypes=("float16",))).gaps > 0


def test_a_call_without_an_optional_argument_is_a_call() -> None:
    params = {"x": "Tensor[r, d] | None"}
    found = analyse(table(params, {"x": "present", "x.shape[1]": "<= 64"}, {"x": "none"}))
    assert found.unreachable == ()
    assert found.gaps == 1
    assert found.example is not None and found.example["x.shape[1]"] == 65
    found = analyse(table(params, {"x.shape[1]": "> 0"}))
    assert found.example == {"x.shape[1]": None}


def test_settings_can_be_anything_or_unset() -> None:
    whens = (
        {"op.a.b": "present"},
        {"env.E": ["x", "y"]},
        {"server.n": ">= 3"},
        {"server.n": "none"},
    )
    found = analyse(table({"x": "int"}, *whens))
    assert found.unreachable == ()
    assert found.gaps > 0
    assert analyse(table({"x": "int"}, *whens, {})).gaps == 0


def test_tiers_without_conditions_serve_all() -> None:
    found = analyse(table({"x": "int"}, {}, {}))
    assert (found.cells, found.gaps, found.unreachable) == (1, 0, ("t1",))


def test_too_large_a_grid_is_sampled_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiers_module, "MAX_CELLS", 50)
    params = {f"n{i}": "int" for i in range(4)}
    found = analyse(table(params, dict.fromkeys(params, "1..9"), {}))
    assert found.exact
    monkeypatch.setattr(tiers_module, "MAX_CELLS", 10)
    found = analyse(table(params, dict.fromkeys(params, "1..9"), {"n0": 77}, {"n1": "< 5"}))
    assert not found.exact
    assert found.unreachable == ()
    assert found.gaps > 0


# -- what does not fit -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "when", "says"),
    [
        ({"x": "Tensor[r]"}, {"y": 1}, "y is no parameter or derived name (x, rows)"),
        ({"x": "Tensor[r]"}, {"y.dtype": "int8"}, "y is no parameter"),
        ({"x": "Tensor[r]"}, {"x": ">= 0"}, "values of a tensor are out of reach"),
        ({"x": "Tensor[r]"}, {"x": True}, "out of reach"),
        ({"x": "Tensor[r]"}, {"x.shape[1]": 1}, "x has 1 dimensions"),
        ({"x": "Tensor[r]"}, {"x.shape[-2]": 1}, "x has 1 dimensions"),
        ({"x": "Tensor[r]"}, {"rows.ndim": 1}, "a derived name has no ndim"),
        ({"x": "Tensor[r]"}, {"rows": True}, "is a number, not True"),
        ({"x": "Tensor[r]", "n": "int"}, {"n": True}, "is a number, not True"),
        ({"x": "Tensor[r]", "n": "int"}, {"n": "decode"}, "is a number, not 'decode'"),
        ({"x": "Tensor[r]", "n": "int"}, {"n.dtype": "int8"}, "declared int, not a tensor"),
        ({"x": "Tensor[r]", "f": "float"}, {"f": "% 2 == 0"}, "only whole numbers"),
        ({"x": "Tensor[r]", "f": "float"}, {"f": "power_of_two"}, "only whole numbers"),
        ({"x": "Tensor[r]", "b": "bool"}, {"b": 1}, "is true or false"),
        ({"x": "Tensor[r]", "b": "bool"}, {"b": "<= 1"}, "is true or false"),
        ({"x": "Tensor[r]", "s": "str"}, {"s": 1}, "compare it with a text"),
        ({"x": "Tensor[r]", "s": "str"}, {"s": "<= 1"}, "compare it with a text"),
        ({"x": "Tensor[r]", "o": "object"}, {"o": "<= 1"}, "compare it with a text"),
    ],
)
def test_a_condition_fits_what_is_declared(
    params: dict[str, str], when: dict[str, Any], says: str
) -> None:
    with pytest.raises(ConditionError) as caught:
        table(params, {}, when, derive={"rows": "x.shape[0]"})
    assert says in str(caught.value)
    assert str(caught.value).startswith("tier t1: ")
    assert (caught.value.tier, caught.value.subject) == ("t1", next(iter(when)))


@pytest.mark.parametrize(
    ("derive", "says"),
    [
        ({"a": "b", "b": "1"}, "derive a: b: b is no parameter"), ({"a": "a"}, "a is no parameter"),
        ({"a": "x"}, "derive a: x is not a number"), ({"a": "s"}, "s is not a number"),
        ({"x": "1"}, "also a parameter"), ({"a": "x.shape[7]"}, "x has 1 dimensions"),
        ({"a": "s.ndim"}, "declared str"), ({"env": "1"}, "no name for a parameter"),
    ],
)  # fmt: skip
def test_formulas_read_what_stands_above_them(derive: dict[str, str], says: str) -> None:
    with pytest.raises(ConditionError) as caught:
        table({"x": "Tensor[r]", "s": "str"}, {}, derive=derive)
    assert says in str(caught.value)


def test_a_declared_number_is_compared_without_a_guard_against_flags() -> None:
    parsed = table({"n": "int", "x": "Tensor[r]"}, {"n": 1, "d": 0}, derive={"d": "x.shape[0]"})
    assert [c.expression() for c in parsed.tiers[0][1]] == ["n == 1", "d == 0"]


# -- absent arguments ----------------------------------------------------------------------------

OPTIONAL = {"x": "Tensor[r]", "y": "Tensor[r, d] | None", "s": "float | None", "m": "str | None"}


@pytest.mark.parametrize(
    ("whens", "found"),
    [
        ([{"y.ndim": 2}], [("t0", "y.ndim")]),
        ([{"y": "present", "y.ndim": 2}], []),
        ([{"y.ndim": 2, "y": "present"}], [("t0", "y.ndim")]),
        ([{"y": "none", "y.ndim": 2}], [("t0", "y.ndim")]),
        ([{"y": "present"}, {"y.dtype": "int8"}], [("t1", "y.dtype")]),
        ([{"y": "none"}, {"y.dtype": "int8"}], []),
        ([{"y": "none", "x.ndim": 1}, {"y.dtype": "int8"}], [("t1", "y.dtype")]),
        ([{"s": "~ 0.5"}], []),
        ([{"s": "none"}, {"s": "~ 0.5"}, {"s": "<= 1"}], []),
        ([{"s": 0.5}, {"s": [1, 2]}, {"m": "decode"}], []),
        ([{"s": 0.5}, {"s": "<= 1"}], []),
        ([{"m": ["a"], "y": "present", "y.shape[0]": 1, "s": "> 0"}], []),
        ([{"x.ndim": 1, "env.E": "1", "op.a.b": "present"}], []),
        ([{"y": "present", "wide": "> 1"}], [("t0", "wide")]),
        ([{"y": "none"}, {"twice": "> 1"}], [("t1", "twice")]),
        ([{"rows": "> 1"}], []),
    ],
)
def test_conditions_on_what_may_be_absent(
    whens: list[dict[str, Any]], found: list[tuple[str, str]]
) -> None:
    derive = {"rows": "x.shape[0]", "wide": "y.shape[1] + rows", "twice": "wide * 2"}
    assert unguarded(table(OPTIONAL, *whens, derive=derive)) == found


@pytest.mark.parametrize("test", ["<= 1", "0.5 .. 1", "~ 0.5", "!= 1"])
@pytest.mark.parametrize("value", [None, 0.5, 1.0, 2.0])
def test_an_optional_number_may_be_compared_as_it_is(test: str, value: float | None) -> None:
    ((_, (condition,)),) = table(OPTIONAL, {"s": test}).tiers
    assert condition.expression().startswith("(s is not None and ")
    assert eval(condition.expression(), {}, {"s": value}) is condition.holds({"s": value})


def test_what_is_present_in_a_tier() -> None:
    whens = ({"y": "present"}, {"s": "none"}, {"m": "decode", "x.ndim": 1}, {"y.ndim": 2}, {})
    assert present(table(OPTIONAL, *whens)) == {
        "t0": {"y"}, "t1": set(), "t2": {"s", "m"}, "t3": {"s", "y"}, "t4": {"s"},
    }  # fmt: skip


# -- calls ---------------------------------------------------------------------------------------


def test_the_values_of_a_call() -> None:
    derive = {"rows": "x.shape[0] * x.shape[1]", "big": "rows > 20", "rest": "rows % n"}
    when = {
        "x.dtype": "int8", "x.ndim": 3, "x.shape[-1]": 4, "x.stride[0]": 12, "x.contiguous": True,
        "y": "none", "rest": 0, "big": False, "op.a.b": "present",
    }  # fmt: skip
    parsed = table({"x": "Tensor", "y": "Tensor | None", "n": "int"}, when, {}, derive=derive)
    values = call_values(parsed, {"x": (2, 3, 4)}, "int8", {"n": 3, "op.a.b": True})
    assert values["rows"] == 6 and values["big"] is False and values["rest"] == 0
    assert values["x.stride[0]"] == 12 and values["y"] is None
    assert parsed.serving(values) == "t0"
    assert parsed.serving(call_values(parsed, {"x": (2, 3, 4)}, "int8", {"n": 3})) == "t1"
    values = call_values(parsed, {"x": (2,), "y": (1,)}, "int8", {"n": 0})
    assert values["x.shape[-1]"] == 2 and values["rows"] is None and values["y"] is not None


# -- the shipped recipes -------------------------------------------------------------------------


@pytest.mark.parametrize("document", RECIPES, ids=lambda d: d.model.name)
def test_a_shipped_recipe_has_no_gap_and_no_tier_in_vain(document: Any) -> None:
    parsed = tier_table(document.model)
    found = analyse(parsed)
    assert found.exact
    assert (found.gaps, found.example, found.unreachable) == (0, None, ())
    assert unguarded(parsed) == []


def test_there_are_shipped_recipes() -> None:
    assert len(RECIPES) >= 6

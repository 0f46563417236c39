from __future__ import annotations

import ast
import math
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from kunlun_adapt.plan import ConditionError, Subject, parse_subject, parse_test, parse_when
from kunlun_adapt.plan.conditions import DTYPES, Condition
from kunlun_adapt.plan.value_tests import (
    NEAR,
    Between,
    Compare,
    Divisible,
    Near,
    OneOf,
    PowerOfTwo,
    Presence,
)

DTYPE = {name: SimpleNamespace(name=name) for name in DTYPES}


@dataclass(frozen=True)
class FakeTensor:
    """What conditions may read of a tensor, and nothing else."""

    dtype: Any
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    contiguous: bool
    where: str

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def device(self) -> Any:
        return SimpleNamespace(type=self.where)

    def stride(self, index: int) -> int:
        return self.strides[index]

    def is_contiguous(self) -> bool:
        return self.contiguous

    def values(self) -> dict[str, Any]:
        return {
            "x.dtype": self.dtype.name, "x.ndim": self.ndim, "x.contiguous": self.contiguous,
            "x.device": self.where, "x.shape[0]": self.shape[0], "x.shape[-1]": self.shape[-1],
            "x.stride[1]": self.strides[1],
        }  # fmt: skip


SIZES = st.integers(1, 40) | st.sampled_from([64, 127, 128, 129, 1024, 8192, 8193])
TENSORS = st.builds(
    FakeTensor,
    st.sampled_from(list(DTYPE.values())),
    st.tuples(SIZES, SIZES, SIZES) | st.tuples(SIZES, SIZES),
    st.tuples(SIZES, SIZES),
    st.booleans(),
    st.sampled_from(["cpu", "cuda", "xpu"]),
)
COUNT_TESTS = st.one_of(
    st.integers(1, 40),
    st.lists(SIZES, min_size=1, max_size=3),
    st.builds("{} {}".format, st.sampled_from(["<=", ">=", "<", ">", "==", "!="]), SIZES),
    st.tuples(SIZES, SIZES).map(lambda p: f"{min(p)}..{max(p)}"),
    st.tuples(st.integers(1, 9), st.integers(0, 8)).map(lambda p: f"% {p[0]} == {p[1] % p[0]}"),
    st.just("power_of_two"),
)
TENSOR_CONDITIONS = st.one_of(
    st.tuples(st.sampled_from(["x.ndim", "x.shape[0]", "x.shape[-1]", "x.stride[1]"]), COUNT_TESTS),
    st.tuples(
        st.just("x.dtype"),
        st.sampled_from(DTYPES) | st.lists(st.sampled_from(DTYPES), min_size=1, max_size=4),
    ),
    st.tuples(st.just("x.contiguous"), st.booleans()),
    st.tuples(
        st.just("x.device"), st.sampled_from(["cpu", ["cpu", "xpu"], ["cuda", "meta", "cpu"]])
    ),
)


def evaluated(condition: Condition, names: dict[str, Any]) -> bool:
    text = condition.expression()
    ast.parse(text, mode="eval")
    # `and` and `not` around it must not change what it means.
    alone = bool(eval(text, {}, names))
    assert bool(eval(f"not ({text})", {}, names)) is not alone
    assert bool(eval(f"True and {text} and True", {}, names)) is alone
    return alone


@given(TENSORS, TENSOR_CONDITIONS)
def test_the_expression_says_of_a_tensor_what_holds_says(
    tensor: FakeTensor, condition: tuple[str, Any]
) -> None:
    (parsed,) = parse_when(dict([condition]))
    assert evaluated(parsed, {"x": tensor, **DTYPE}) is parsed.holds(tensor.values())


NUMBERS = st.integers(-50, 50) | st.floats(-60, 60, allow_nan=False)
WRITTEN = NUMBERS.map(lambda n: f"{n:+.3f}" if isinstance(n, float) else str(n))
SCALAR_TESTS = st.one_of(
    st.none(), st.booleans(), NUMBERS,
    st.sampled_from(["none", "present", "absent", "power_of_two", "decode", "it's \"x\"\n", "é"]),
    st.lists(NUMBERS | st.booleans() | st.none() | st.sampled_from(["a", "b"]), min_size=1),
    st.builds("{}{}".format, st.sampled_from(["<=", ">= ", "<", ">", "==", "!="]), WRITTEN),
    st.tuples(st.integers(-9, 9), st.integers(-9, 9)).map(lambda p: f"{min(p)} .. {max(p)}"),
    st.tuples(st.integers(1, 9), st.integers(0, 8)).map(lambda p: f"% {p[0]} == {p[1] % p[0]}"),
    st.sampled_from(["~ 0.08838834764831845", "~ -2", "~ 1e-6", "~3"]),
)  # fmt: skip
VALUES = st.one_of(
    st.none(), st.booleans(), NUMBERS, st.sampled_from(["a", "decode", "", "none"]),
    st.sampled_from([0.08838834764831845, 0.0883883, 0.0884, -2.0, 1e-6, 1.000009e-6, 3, 8, 32]),
)  # fmt: skip


@settings(max_examples=500)
@given(SCALAR_TESTS, VALUES)
def test_the_expression_says_of_a_value_what_holds_says(test: Any, value: Any) -> None:
    (parsed,) = parse_when({"n": test})
    number = isinstance(value, (int, float))
    if not isinstance(parsed.test, (OneOf, Presence)):
        assume(number)  # the documented precondition; `guarded` finds what could break it
    if isinstance(parsed.test, PowerOfTwo):
        assume(isinstance(value, int))
    assert evaluated(parsed, {"n": value}) is parsed.holds({"n": value})


@settings(max_examples=500)
@given(SCALAR_TESTS, VALUES | st.lists(st.integers(), max_size=2))
def test_of_a_server_argument_anything_may_be_asked(test: Any, value: Any) -> None:
    # Which type it has is upstream's choice, and unset is None: no condition raises for that.
    (parsed,) = parse_when({"server.n": test})
    assert evaluated(parsed, {"_server_n": value}) is parsed.holds({"server.n": value})


@pytest.mark.parametrize("test", ["<= 3", "1..3", "% 2 == 0", "~ 1.5", "power_of_two"])
@pytest.mark.parametrize("value", [None, "a"])
def test_a_comparison_does_not_hold_for_what_is_no_number(test: str, value: Any) -> None:
    (parsed,) = parse_when({"n": test})
    assert parsed.holds({"n": value}) is False
    assert parsed.holds({}) is False


@pytest.mark.parametrize(
    ("test", "value", "holds"),
    [
        (1, True, False), (0, False, False), (True, 1, False), (False, 0, False),
        (True, True, True), ([1, 2], True, False), ([True, 2], 1, False), ([True, 1], 1, True),
        ([0, None], False, False), ([0, None], None, True), (1, 1.0, True), (1.0, True, False),
        ("1", 1, False), ("none", "none", False), (["none"], "none", True),
    ],
)  # fmt: skip
def test_a_flag_is_no_number(test: Any, value: Any, holds: bool) -> None:
    (parsed,) = parse_when({"n": test})
    assert parsed.holds({"n": value}) is holds
    assert evaluated(parsed, {"n": value}) is holds


@pytest.mark.parametrize("value", ["", "0", "text", None])
@pytest.mark.parametrize("test", ["present", "none", "0", ["text", "other"]])
def test_the_environment_is_text_and_empty_is_unset(value: str | None, test: Any) -> None:
    (parsed,) = parse_when({"env.NAME": test})
    assert evaluated(parsed, {"_env_NAME": value}) is parsed.holds({"env.NAME": value})
    if test == "present":
        assert parsed.holds({"env.NAME": value}) is (value in ("0", "text"))


@pytest.mark.parametrize("there", [True, False])
def test_a_vendor_op_is_there_or_not(there: bool) -> None:
    (present,) = parse_when({"op.kunlun_ops.swiglu": "present"})
    (none,) = parse_when({"op.kunlun_ops.swiglu": "none"})
    values = {"op.kunlun_ops.swiglu": there}
    names = {"_op_kunlun_ops_swiglu": there}
    assert present.holds(values) is evaluated(present, names) is there
    assert none.holds(values) is evaluated(none, names) is not there


def test_the_text_of_expressions_stays_readable() -> None:
    when = {
        "x.dtype": ["float16", "bfloat16"], "x.ndim": 3, "rows": "<= 8192", "n": 7, "m": 1,
        "flag": True, "d": [64, 128], "w": "% 128 == 0", "s": "~ 0.5", "y": "none", "z": "64..128",
        "q": [0, 1], "x.stride[-1]": 1, "mode": "decode", "op.a.b": "present", "env.E": "none",
    }  # fmt: skip
    assert [c.expression() for c in parse_when(when)] == [
        "x.dtype in (float16, bfloat16)", "x.ndim == 3", "rows <= 8192", "n == 7",
        "(m == 1 and m is not True)", "flag is True", "d in (64, 128)", "w % 128 == 0",
        "abs(s - 0.5) <= 5e-06", "y is None", "64 <= z <= 128",
        "(q in (0, 1) and q is not True and q is not False)", "x.stride(-1) == 1",
        "mode == 'decode'", "_op_a_b", "not _env_E",
    ]  # fmt: skip


def test_a_declared_number_needs_no_guard() -> None:
    subject = Subject("n", "call", "n", kind="int")
    assert OneOf((1,)).expression(subject, "n") == "n == 1"
    assert OneOf((0, 1)).expression(subject, "n") == "n in (0, 1)"


def test_a_server_argument_is_asked_whether_it_is_a_number() -> None:
    when = {"server.a": "<= 64", "server.b": "power_of_two", "server.c": "none", "server.d": "cpu"}
    assert [c.expression() for c in parse_when(when)] == [
        "(isinstance(_server_a, (int, float)) and _server_a <= 64)",
        "(isinstance(_server_b, int) and (_server_b > 0 and _server_b & (_server_b - 1) == 0))",
        "_server_c is None",
        "_server_d == 'cpu'",
    ]


@pytest.mark.parametrize(
    ("value", "test"),
    [
        ("<= 64", Compare("<=", 64)), ("<=64", Compare("<=", 64)), (" > -1 ", Compare(">", -1)),
        ("!= 1e3", Compare("!=", 1000.0)), ("64..1024", Between(64, 1024)),
        ("-1 .. 0.5", Between(-1, 0.5)), ("1..1", Between(1, 1)),
        ("% 128 == 0", Divisible(128, 0)), ("%3==2", Divisible(3, 2)), ("~ 1e-6", Near(1e-6)),
        ("power_of_two", PowerOfTwo()), ("none", Presence(False)), ("absent", Presence(False)),
        ("present", Presence(True)), (None, Presence(False)), (3, OneOf((3,))),
        (["a", 1, True], OneOf(("a", 1, True))), ("decode", OneOf(("decode",))),
    ],
)  # fmt: skip
def test_what_is_written_is_read(value: Any, test: Any) -> None:
    found = parse_test(parse_subject("n"), value)
    assert found == test
    assert type(found) is type(test)


@pytest.mark.parametrize(
    ("subject", "value", "says"),
    [
        ("n", [], "empty list"), ("n", "5..4", "5 is above 4"), ("n", "% 0 == 0", "for nothing"),
        ("n", "% 4 == 4", "for nothing"), ("n", "<= x", "write '<= 64'"), ("n", "~ 0", "near 0"),
        ("n", ">= 1 and < 3", "write '<= 64'"), ("n", "1..", "write '<= 64'"),
        ("n", math.inf, "finite"), ("n", [math.nan], "finite"), ("n", "<= 1e999", "finite"),
        ("n", "<= " + "9" * 5000, "at most 40"), ("n", [[1]], "plain value"),
        ("n", {"a": 1}, "plain value"), ("n", "!none", "cannot be read"), ("n", "<= ٣", "write"),
        ("x.dtype", "fp16", "is not a dtype (one of float16"), ("x.dtype", 3, "not a dtype"),
        ("x.dtype", ["float16", None], "not a dtype"), ("x.dtype", "<= 3", "by name"),
        ("x.dtype", "present", "by name"), ("x.contiguous", "yes", "true or false"),
        ("x.contiguous", 1, "true or false"), ("x.contiguous", [True, False], "true or false"),
        ("x.device", 0, "by name"), ("x.device", "<= 1", "by name"),
        ("x.ndim", "two", "whole number"), ("x.ndim", True, "whole number"),
        ("x.shape[0]", [1, 2.5], "whole number"), ("x.shape[0]", "none", "whole number"),
        ("env.A", 1, "put the value in quotes"), ("env.A", "<= 3", "put the value in quotes"),
        ("env.A", True, "put the value in quotes"), ("op.a.b", True, "present or none"),
        ("op.a.b", "1..2", "present or none"),
    ],
)  # fmt: skip
def test_what_cannot_hold_is_refused_in_words(subject: str, value: Any, says: str) -> None:
    with pytest.raises(ConditionError) as caught:
        parse_when({subject: value})
    assert says in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "", "x.", "x.size", "x.shape", "x.shape[]", "x.shape[a]", "x.shape[-0]", "x.shape[00]",
        "x.shape[100]", "x.dtype[0]", "x.ndim[0]", "x.shape[0][1]", "x.item()", "x[0]", "9x", "x y",
        "x\n", "env.", "env.a b", "op..a", "op.a.", "server.a-b", "class", "None", "lambda.ndim",
        "x.shape[0]; import os", "é", "x.shape.dtype", "server.a.b", "env.A.B", "server.import",
    ],
)  # fmt: skip
def test_what_conditions_cannot_read_is_refused(text: str) -> None:
    with pytest.raises(ConditionError) as caught:
        parse_subject(text)
    assert repr(text) in str(caught.value)


@pytest.mark.parametrize(
    ("text", "expression"),
    [
        ("x", "x"), ("x.dtype", "x.dtype"), ("x.ndim", "x.ndim"), ("x.shape[-2]", "x.shape[-2]"),
        ("x.stride[0]", "x.stride(0)"), ("x.contiguous", "x.is_contiguous()"),
        ("x.device", "x.device.type"), ("env.A_B", "_env_A_B"), ("server.page", "_server_page"),
        ("op.torch.ops.ns.op", "_op_torch_ops_ns_op"),
    ],
)  # fmt: skip
def test_subjects_and_how_they_are_read(text: str, expression: str) -> None:
    assert parse_subject(text).expression() == expression


@given(st.text(max_size=30), st.text(max_size=30))
def test_any_text_is_read_or_refused(subject: str, value: str) -> None:
    try:
        conditions = parse_when({subject: value})
    except ConditionError as error:
        assert str(error)
        return
    tree = ast.parse(conditions[0].expression(), mode="eval")
    names = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
    assert names <= {
        "abs",
        "isinstance",
        "int",
        "float",
        "x",
        conditions[0].subject.expression().split(".")[0],
    }
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call)]
    assert all(ast.unparse(c.func).rpartition(".")[2] in _CALLED for c in calls)


_CALLED = {"abs", "isinstance", "stride", "is_contiguous"}


def test_near_is_as_wide_as_it_says() -> None:
    test = Near(0.5)
    assert test.slack == pytest.approx(0.5 * NEAR)
    assert test.holds(0.5 * (1 + NEAR / 2)) and not test.holds(0.5 * (1 + 2 * NEAR))
    import struct

    as_float32 = struct.unpack("f", struct.pack("f", 0.08838834764831845))[0]
    assert as_float32 != 0.08838834764831845
    assert Near(0.08838834764831845).holds(as_float32)

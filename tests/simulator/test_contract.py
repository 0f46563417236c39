"""Contracts: what a call may be, and that a breach names the op and the fault."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kunlun_adapt.simulator.contract import (
    Argument,
    Contract,
    ContractError,
    Limit,
    _read,
    check_call,
    contract_files,
    contracts,
)
from kunlun_adapt.simulator.shapes import PatternError, holds, match_shape, parse_shape


class FakeTensor:
    """What a check reads of a tensor, without torch."""

    def __init__(
        self, *shape, dtype="float32", contiguous=True, device="cpu", zero=True, strides=None, at=0
    ):
        self.shape, self.dtype, self.device = shape, f"torch.{dtype}", device
        self._contiguous, self._zero = contiguous, zero
        self._strides, self._at = strides, at

    def is_contiguous(self):
        return self._contiguous

    def stride(self):
        return self._strides or tuple(range(len(self.shape)))

    def numel(self):
        return math.prod(self.shape)

    def data_ptr(self):
        return self._at

    def any(self):
        return not self._zero


def contract(*args, limits=()):
    return Contract("vendor.op", "test", "does", "source", tuple(args), tuple(limits), 0)


def tensor(name, shape, **more):
    return Argument(name, more.pop("role", "in"), shapes=(parse_shape(shape),), **more)


@pytest.mark.parametrize(
    ("patterns", "shapes", "symbols"),
    [
        (["[M, 2*d]", "[M, d]"], [(3, 8), (3, 4)], {"M": 3, "d": 4}),
        (["[*B, 2*d]", "[*B, d]"], [(5, 3, 8), (5, 3, 4)], {"d": 4}),
        (["[E+1]", "[E]"], [(9,), (8,)], {"E": 8}),
        (["[T, H*D]", "[T, H, D]"], [(2, 12), (2, 3, 4)], {"T": 2, "H": 3, "D": 4}),
        (["[_, 12]"], [(7, 12)], {}),
    ],
)
def test_shapes_share_their_symbols(patterns, shapes, symbols):
    found, runs = {}, {}
    for pattern, shape in zip(patterns, shapes, strict=True):
        assert match_shape(parse_shape(pattern), shape, found, runs) is None
    assert found == symbols


@pytest.mark.parametrize(
    ("patterns", "shapes", "problem"),
    [
        (["[M, 2*d]"], [(3, 7)], "no d makes 2*d equal 7"),
        (["[M]", "[M]"], [(3,), (4,)], "M=3, got 4"),
        (["[M, N]"], [(3,)], "has 1 dimensions"),
        (["[*B, d]", "[*B, d]"], [(2, 3, 4), (3, 3, 4)], "leading dimensions"),
        (["[E+1]"], [(0,)], "no E makes"),
    ],
)
def test_shapes_that_do_not_match(patterns, shapes, problem):
    found, runs, said = {}, {}, None
    for pattern, shape in zip(patterns, shapes, strict=True):
        said = match_shape(parse_shape(pattern), shape, found, runs)
    assert said is not None and problem in said


@given(st.integers(0, 50), st.integers(1, 9), st.integers(0, 9))
def test_one_unknown_is_solved(value, factor, offset):
    found: dict[str, int] = {}
    pattern = parse_shape(f"[{factor}*n+{offset}]")
    assert match_shape(pattern, (factor * value + offset,), found, {}) is None
    assert found == {"n": value}


@pytest.mark.parametrize("text", ["M, N", "[M", "[2**]"])
def test_bad_patterns_are_the_contracts_fault(text):
    with pytest.raises(PatternError):
        parse_shape(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("M * K < 400", True), ("M % 2 == 0 and not M > 8", True), ("1 < M < 3 or K == 9", False)],
)
def test_limits(text, expected):
    assert holds(text, {"M": 4, "K": 2}) is expected


def test_a_limit_cannot_call():
    with pytest.raises(PatternError):
        holds("__import__('os')", {})


def test_a_product_is_checked_once_a_later_argument_decides_it():
    op = contract(tensor("q", "[T, H*D]"), tensor("k", "[T, H, D]"))
    check_call(op, {"q": FakeTensor(2, 12), "k": FakeTensor(2, 3, 4)})
    with pytest.raises(ContractError, match=r"q is .* expected \[T, H\*D\]"):
        check_call(op, {"q": FakeTensor(2, 13), "k": FakeTensor(2, 3, 4)})


def test_a_scalar_that_states_a_symbol_binds_it():
    size = Argument("size", "param", type="int", symbol="D")
    with pytest.raises(ContractError, match="x is"):
        check_call(contract(tensor("x", "[D]"), size), {"x": FakeTensor(4), "size": 5})


@pytest.mark.parametrize(
    ("arg", "value", "problem"),
    [
        (Argument("x", "in", dtypes=("float16",)), FakeTensor(1), "x is float32, the op takes"),
        (Argument("x", "in", contiguous=True), FakeTensor(2, contiguous=False), "not contiguous"),
        (Argument("x", "in", aligned=64), FakeTensor(2, at=1040), "aligned to 64 bytes, and is 16"),
        (Argument("x", "out", zeroed=True), FakeTensor(2, zero=False), "zero-filled"),
        (Argument("x", "in"), None, "x is None, but it is required"),
        (Argument("x", "in"), 3, "x is 3, expected a tensor"),
        (Argument("n", "param", type="int"), 1.5, "n is 1.5, expected int"),
        (Argument("n", "param", type="int"), True, "n is True, expected int"),
        (Argument("n", "param", values=(None, "a")), "b", "n is 'b', public callers pass only"),
    ],
)
def test_a_breach_names_op_simulator_and_fault(arg, value, problem):
    with pytest.raises(ContractError) as caught:
        check_call(contract(arg), {arg.name: value})
    message = str(caught.value)
    assert message.startswith("kunlun_adapt simulator: vendor.op: ") and problem in message


def test_an_argument_may_be_tied_to_anothers_dtype():
    op = contract(Argument("x", "in"), Argument("y", "out", dtype_of="x"))
    with pytest.raises(ContractError, match="y is int32, expected float32 as x"):
        check_call(op, {"x": FakeTensor(1), "y": FakeTensor(1, dtype="int32")})


def test_an_aligned_tensor_passes():
    check_call(contract(Argument("x", "in", aligned=64)), {"x": FakeTensor(2, at=1024)})


PITCH = Argument("pitch", "param", type="int", symbol="M")


@pytest.mark.parametrize(
    ("shape", "strides", "problem"),
    [
        ((3, 4), (4, 1), None),
        ((3, 4), (8, 1), "x: the stride is [8, 1], expected [M, 1]: M=4, got 8"),
        ((3, 4), (4, 2), "x: the stride is [4, 2]"),
        ((1, 4), (9, 1), None),  # there is no second row
        ((0, 4), (9, 9), None),  # there is no row
    ],
)
def test_strides_are_held_to_their_pattern(shape, strides, problem):
    op = contract(Argument("x", "in", strides=parse_shape("[M, 1]")), PITCH)
    call = {"x": FakeTensor(*shape, strides=strides), "pitch": 4}
    if problem is None:
        check_call(op, call)
        return
    with pytest.raises(ContractError) as caught:
        check_call(op, call)
    assert problem in str(caught.value)


def test_an_alignment_that_is_no_power_of_two_is_the_contracts_fault():
    entry = {"op": "a.b", "does": "d", "source": "s"}
    for aligned in (0, 24, "64", True):
        with pytest.raises(ValueError, match=r"a\.b, argument x: aligned is no power of two"):
            _read("f", {**entry, "args": [{"name": "x", "role": "in", "aligned": aligned}]})


def test_tensors_must_share_a_device():
    op = contract(Argument("x", "in"), Argument("y", "in"))
    with pytest.raises(ContractError, match="different devices"):
        check_call(op, {"x": FakeTensor(1), "y": FakeTensor(1, device="cuda:0")})


def test_a_limit_that_does_not_hold_says_why():
    op = contract(tensor("x", "[M]"), limits=[Limit("M <= 4", "four lanes")])
    check_call(op, {"x": FakeTensor(4)})
    with pytest.raises(ContractError, match=r"'M <= 4' does not hold \(four lanes\); M=5"):
        check_call(op, {"x": FakeTensor(5)})


def test_binding_takes_a_required_argument_after_a_default():
    op = contract(
        Argument("x", "in"),
        Argument("flag", "param", default=False),
        Argument("n", "param"),
        Argument("y", "out", optional=True),
    )
    assert op.bind(("x",), {"n": 2}) == {"x": "x", "n": 2, "flag": False, "y": None}


@pytest.mark.parametrize(
    ("args", "kwargs", "problem"),
    [
        ((1, 2), {}, "2 positional"),
        ((1,), {"z": 2}, "unknown argument 'z'"),
        ((1,), {"x": 2}, "two values for 'x'"),
        ((), {}, "no value for 'x'"),
    ],
)
def test_binding_refuses_what_does_not_fit(args, kwargs, problem):
    with pytest.raises(ContractError, match=problem):
        contract(Argument("x", "in")).bind(args, kwargs)


def test_every_shipped_contract_reads():
    files = contract_files()
    assert {"activation", "norm", "rope", "moe"} <= {path.stem for path in files}
    assert {c.family for c in contracts().values()} == {path.stem for path in files}
    assert all(c.source and c.does for c in contracts().values())

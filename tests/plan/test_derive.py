from __future__ import annotations

import ast
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kunlun_adapt.plan import ConditionError, parse_derive

LEAVES = st.one_of(
    st.integers(0, 99).map(str),
    st.sampled_from(["x.shape[0]", "x.shape[-1]", "x.ndim", "x.stride[0]", "n", "x . shape [ 1 ]"]),
)
FORMULAS = st.recursive(
    LEAVES,
    lambda inner: (
        st.tuples(inner, st.sampled_from(["+", "-", "*", "//", "%"]), inner).map(
            lambda p: f"({p[0]} {p[1]} {p[2]})"
        )
        | inner.map(lambda f: f"-({f})")
    ),
    max_leaves=6,
)
COMPARED = st.tuples(FORMULAS, st.sampled_from(["<", "<=", ">", ">=", "==", "!="]), FORMULAS).map(
    " ".join
)


@given(FORMULAS | COMPARED, st.integers(-9, 9), st.tuples(*[st.integers(1, 99)] * 3))
def test_the_text_computes_what_value_computes(text: str, n: int, shape: Any) -> None:
    derived = parse_derive("d", text)
    tensor = SimpleNamespace(shape=shape, ndim=3, stride=lambda index: (7, 3, 1)[index])
    values = {
        "x.shape[0]": shape[0], "x.shape[1]": shape[1], "x.shape[-1]": shape[2], "x.ndim": 3,
        "x.stride[0]": 7, "n": n,
    }  # fmt: skip
    assert set(derived.subjects) <= set(values)
    try:
        wanted = eval(derived.text, {}, {"x": tensor, "n": n})
    except ZeroDivisionError:
        with pytest.raises(ZeroDivisionError):
            derived.value(values)
        return
    assert derived.value(values) == wanted
    assert type(derived.value(values)) is type(wanted)
    assert (derived.kind == "bool") == isinstance(wanted, bool)
    plain = text.replace("x.stride[0]", "7").replace(" . ", ".").replace(" [ 1 ]", "[1]")
    assert eval(plain, {}, {"x": tensor, "n": n}) == wanted


def test_a_formula_lists_what_it_reads_once_and_in_order() -> None:
    derived = parse_derive("d", "rows * x.shape[1] + rows - 2")
    assert derived.subjects == ("rows", "x.shape[1]")
    assert derived.text == "(((rows * x.shape[1]) + rows) - 2)"
    assert parse_derive("d", " True ").kind == "bool"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is not a formula"), ("x.shape[0", "is not a formula"), ("x = 1", "not a formula"),
        ("1; import os", "is not a formula"), ("x.shape[0] / 2", "+ - * // %"),
        ("x.shape[0] ** 2", "+ - * // %"), ("f(x)", "+ - * // %"), ("1.5", "+ - * // %"),
        ("'a'", "+ - * // %"), ("a < b < c", "two derived names"), ("a and b", "two derived"),
        ("not a", "+ - * // %"), ("a if b else c", "+ - * // %"), ("x.item()", "+ - * // %"),
        ("(a := 1)", "+ - * // %"), ("[1]", "+ - * // %"), ("lambda: 1", "+ - * // %"),
        ("x.size", "cannot be read"), ("x[0]", "cannot be read"), ("x.shape", "needs an index"),
        ("x.shape[1 + 1]", "cannot be read"), ("env.A + 1", "cannot be read in a formula"),
        ("op.a.b", "in a formula"), ("x.dtype == y.dtype", "in a formula"),
        ("0x" + "f" * 300, "+ - * // %"), ("1+" * 300 + "1", "at most 400"),
        ("(" * 190 + "1" + ")" * 190 + "(", "not a formula"), ("x.__class__", "cannot be read"),
        ("x\x00", "is not a formula"), ("yield 1", "is not a formula"),
    ],
)  # fmt: skip
def test_what_is_no_formula_is_refused_in_words(text: str, says: str) -> None:
    with pytest.raises(ConditionError) as caught:
        parse_derive("d", text)
    assert says in str(caught.value)


@given(st.text(alphabet="x.shape[0]1+-*/%<>=() nand\n'\"é", max_size=40))
def test_any_text_is_a_tame_formula_or_refused(text: str) -> None:
    try:
        derived = parse_derive("d", text)
    except ConditionError:
        return
    allowed = (
        ast.Expression, ast.Constant, ast.Name, ast.Attribute, ast.Subscript, ast.BinOp,
        ast.UnaryOp, ast.Compare, ast.Load, ast.operator, ast.cmpop, ast.USub, ast.Call,
    )  # fmt: skip
    for node in ast.walk(ast.parse(derived.text, mode="eval")):
        assert isinstance(node, allowed)
        if isinstance(node, ast.Call):
            assert ast.unparse(node.func).rpartition(".")[2] in ("stride", "is_contiguous")

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kunlun_adapt.plan import ConditionError, Param, parse_param


@pytest.mark.parametrize(
    ("text", "param"),
    [
        ("Tensor[rows, 2*d]", Param("x", "Tensor", ("rows", "2*d"), False, False)),
        ("Tensor", Param("x", "Tensor", (), True, False)),
        ("Tensor[]", Param("x", "Tensor", (), False, False)),
        ("Tensor[..., d]", Param("x", "Tensor", ("d",), True, False)),
        ("Tensor[...]", Param("x", "Tensor", (), True, False)),
        ("Tensor[batch + 1] | None", Param("x", "Tensor", ("batch + 1",), False, True)),
        ("None | Tensor[n] int32", Param("x", "Tensor", ("n",), False, True, "int32")),
        ("Tensor[n] int32, host", Param("x", "Tensor", ("n",), False, False, "int32", True)),
        ("Tensor[n], host", Param("x", "Tensor", ("n",), False, False, None, True)),
        ("int", Param("x", "int", (), True, False)),
        ("float | None", Param("x", "float", (), True, True)),
        (" str|None ", Param("x", "str", (), True, True)),
        ("object", Param("x", "object", (), True, False)),
    ],
)
def test_declarations(text: str, param: Param) -> None:
    assert parse_param("x", text) == param


@pytest.mark.parametrize(
    ("text", "ndim"), [("Tensor[a, b]", 2), ("Tensor[]", 0), ("Tensor", None), ("int", None)]
)
def test_the_rank_is_known_where_the_shape_is(text: str, ndim: int | None) -> None:
    assert parse_param("x", text).ndim == ndim


def test_fixed_dimensions() -> None:
    param = parse_param("x", "Tensor[rows, 128, 2*d]")
    assert [param.dimension(i) for i in (0, 1, 2, -2, 3, -4)] == [None, 128, None, 128, None, None]
    trailing = parse_param("x", "Tensor[..., rows, 64]")
    assert [trailing.dimension(i) for i in (-1, -2, -3, 0, 1)] == [64, None, None, None, None]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "write Tensor[rows, 2*d]"), ("None", "write Tensor"), ("tensor", "write Tensor"),
        ("Tensor[", "write Tensor"), ("Tensor[a]]", "write Tensor"), ("int | str", "write Tensor"),
        ("int[]", "write Tensor"), ("int[3]", "write Tensor"), ("int int8", "write Tensor"),
        ("int, host", "write Tensor"), ("Tensor[a] fp16", "'fp16' is not a dtype (one of float16"),
        ("Tensor[a,, b]", "'' is not a dimension"), ("Tensor[a, ...]", "stands first"),
        ("Tensor[a;b]", "not a dimension"), ("Tensor[a\n]\n", "write Tensor"),
        ("Tensor[²]", "not a dimension"), ("Tensor[,]", "not a dimension"),
    ],
)  # fmt: skip
def test_what_is_no_declaration_is_refused_in_words(text: str, says: str) -> None:
    if text.endswith("\n"):
        text = text.replace("]\n", "]; x")
    with pytest.raises(ConditionError) as caught:
        parse_param("x", text)
    assert says in str(caught.value)


@given(st.text(alphabet="Tensorinfl[], |None.32*+x²٣\n", max_size=30))
def test_any_text_is_a_declaration_or_refused(text: str) -> None:
    try:
        param = parse_param("x", text)
    except ConditionError as error:
        assert str(error)
        return
    for index in range(-4, 4):
        size = param.dimension(index)
        assert size is None or size >= 0

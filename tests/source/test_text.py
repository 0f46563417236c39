from __future__ import annotations

import ast
import math
import tokenize
from io import StringIO
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kunlun_adapt.source.text import (
    SourceError,
    comment,
    dotted,
    identifier,
    literal,
    literal_default,
    module_and_name,
)

NASTY = st.text(
    alphabet=st.one_of(
        st.characters(),
        st.sampled_from("'\"\\\n\r\t\x00\x0c\x1c\x85\u2028\u2029\u202e\u2066\ufeff#{}%();: "),
    ),
    max_size=60,
)
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | NASTY,
    lambda inner: st.lists(inner, max_size=3) | st.lists(inner, max_size=3).map(tuple),
    max_leaves=8,
)
ALLOWED = (ast.Constant, ast.List, ast.Tuple, ast.UnaryOp, ast.USub, ast.Load)


@given(PLAIN)
@example("None\n import os")
@example("'''\"\"\"\\")
@example("\ud800")
def test_a_literal_is_one_value_and_comes_back(value: Any) -> None:
    text = literal(value)
    assert text.isascii() and "\n" not in text
    tree = ast.parse(f"x = [{text}]\n")
    assert len(tree.body) == 1 and isinstance(tree.body[0], ast.Assign)
    assert all(isinstance(n, ALLOWED) for n in ast.walk(tree.body[0].value))
    found = ast.literal_eval(text)
    assert found == value
    assert repr(found) == repr(value)


@pytest.mark.parametrize(
    "value", [math.nan, {}, {"a": 1}, set(), b"x", 1j, object(), ..., [1, {}], 1 << 5000, int]
)
def test_what_is_not_plain_is_refused(value: Any) -> None:
    with pytest.raises(SourceError):
        literal(value)


def test_a_value_that_dresses_as_a_plain_one_is_refused() -> None:
    class Sly(str):
        __slots__ = ()

    class Slier(int):
        def __repr__(self) -> str:
            return "__import__('os')"

    for value in (Sly("x"), Slier(1), [Slier(1)]):
        with pytest.raises(SourceError):
            literal(value)


@given(NASTY, st.integers(0, 40))
@example("None\n import os", 0)
@example("a\u2028import os\x0cimport sys\x85x\r\ny", 4)
@example("# -*- coding: utf-7 -*-", 0)
@example("", 4)
def test_a_comment_is_only_comments(text: str, indent: int) -> None:
    written = comment(text, indent)
    source = f"if x:\n{' ' * 44}a = 1\n{written}\nb = 2\n"
    assert ast.dump(ast.parse(source)) == ast.dump(ast.parse(f"if x:\n{' ' * 44}a = 1\nb = 2\n"))
    for line in written.split("\n"):
        assert line.startswith(f"{' ' * indent}# ")
        assert line.isprintable()
    source.encode("utf-8")
    kinds = [t.type for t in tokenize.generate_tokens(StringIO(written + "\n").readline)]
    assert set(kinds) <= {tokenize.COMMENT, tokenize.NL, tokenize.ENDMARKER}


def test_a_comment_keeps_its_words_and_wraps() -> None:
    words = [f"word{i}" for i in range(60)]
    written = comment(" ".join(words), 4)
    assert [w for w in written.split() if w != "#"] == words
    assert max(map(len, written.split("\n"))) <= 96
    assert comment("注释 — why") == "# 注释 — why"
    assert comment(" \n ") == "# (no reason given)"


@given(NASTY)
@example("None")
@example("__debug__")
@example("a.b")
@example("a\n")
@example("ｘ")
def test_an_identifier_is_a_name_or_refused(text: str) -> None:
    try:
        assert identifier(text) == text
    except SourceError:
        return
    tree = ast.parse(f"def f({text}):\n    pass\n")
    compile(tree, "x", "exec")
    (function,) = tree.body
    assert isinstance(function, ast.FunctionDef)
    assert [a.arg for a in function.args.args] == [text]


@pytest.mark.parametrize("text", ["a", "_x9", "match", "type", "self"])
def test_names_pass(text: str) -> None:
    assert identifier(text) == text
    assert dotted(f"{text}.{text}") == f"{text}.{text}"


@pytest.mark.parametrize(
    "text", ["", "9a", "a b", "a.b", "class", "True", "é", "a\n", "a;b", "__debug__", "ª"]
)
def test_what_is_no_name_is_refused(text: str) -> None:
    with pytest.raises(SourceError):
        identifier(text)
    with pytest.raises(SourceError):
        dotted(f"ok.{text}." if text == "a.b" else f"ok.{text}")


def test_an_implementation_path_is_split_and_checked() -> None:
    assert module_and_name("a.b:c") == ("a.b", "c")
    assert module_and_name("a:B.c") == ("a", "B.c")
    for wrong in ("a.b", "a:b:c", ":b", "a:", "a b:c", "a:class", "a:b\nimport os"):
        with pytest.raises(SourceError):
            module_and_name(wrong)


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("None", (True, None)), ("-1", (True, -1)), ("1e-6", (True, 1e-6)), ("'a'", (True, "a")),
        ("(1, [2])", (True, (1, [2]))), ("1e999", (True, math.inf)), ("True", (True, True)),
        (None, (False, None)), ("torch.float16", (False, None)), ("f()", (False, None)),
        ("{}", (False, None)), ("b'x'", (False, None)), ("...", (False, None)),
        ("{[]: 1}", (False, None)), ("0x" + "f" * 5000, (False, None)), ("9" * 5000, (False, None)),
        ("(" * 500 + ")" * 500, (False, None)), ("1j", (False, None)), ("x\x00", (False, None)),
        ("__import__('os').system('x')", (False, None)), ("", (False, None)),
    ],
)  # fmt: skip
def test_defaults_are_literals_or_not(source: str | None, found: tuple[bool, Any]) -> None:
    assert literal_default(source) == found


@given(NASTY)
def test_any_default_text_is_judged_without_a_traceback(source: str) -> None:
    plain, value = literal_default(source)
    assert not plain or ast.literal_eval(literal(value)) == value

from __future__ import annotations

import ast
import gc

import pytest

from kunlun_adapt.upstream import syntax


def _print(text: str) -> str:
    return syntax.fingerprint(ast.parse(text).body[0])


SAME = [
    (
        "def f(x):\n    return x + 1\n",
        "def f(x):\n    '''Doc.'''\n    # why\n    return (x\n     + 1)\n",
    ),
    ("def f(x):\n    return x\n", "@cache\ndef g(x: int, y=2) -> int:\n    return x\n"),
    ("def f():\n    pass\n", "def f():\n    '''Only words.'''\n"),
    (
        "class A:\n    def f(self):\n        return 'a'\n",
        'class B:\n    """Doc."""\n\n    def f(self):\n        """Doc."""\n        return "a"\n',
    ),
    ("x = {'a': 1}\n", 'y = {\n    "a": 1,  # one\n}\n'),
]
DIFFERENT = [
    ("def f(x):\n    return x + 1\n", "def f(x):\n    return x + 2\n"),
    ("def f(x):\n    return x\n", "async def f(x):\n    return x\n"),
    ("def f(x):\n    'a'\n    return x\n", "def f(x):\n    y = 'a'\n    return x\n"),
    ("class A:\n    def f(self): pass\n", "class A:\n    def g(self): pass\n"),
    ("class A:\n    def f(self): pass\n", "class A:\n    def f(self, x): pass\n"),
    ("x = 1\n", "x = 1.0\n"),
    ("x = b'a'\n", "x = 'a'\n"),
    ("x = [1, [2]]\n", "x = [[1], 2]\n"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_fingerprint_ignores_what_does_not_run(one: str, other: str) -> None:
    assert _print(one) == _print(other)


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_fingerprint_sees_what_runs(one: str, other: str) -> None:
    assert _print(one) != _print(other)


def test_fingerprint_is_the_same_on_every_python() -> None:
    # A literal: a hash that depends on the interpreter would make every lock look stale.
    text = (
        "def f(x, *a, k=1):\n    if x:\n        return f'{x!r:>4}' + str(a[1:])\n    return [k]\n"
    )
    assert _print(text) == "30eeb024223142b3"


def test_a_span_is_parsed_at_any_indentation() -> None:
    text = '    def f(self):\n        return """\nleft\n  in"""\n'
    node = syntax.parse_span(text)
    assert isinstance(node, ast.FunctionDef)
    assert ast.literal_eval(node.body[0].value) == "\nleft\n  in"  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("tests", "guard"),
    [
        ([], None),
        ([("a", True)], "a"),
        ([("a", False)], "not a"),
        ([("a and b or c", True), ("d", True)], "(a and b or c) and d"),
        ([("d", True), ("not (a and b or c)", False)], "d and (a and b or c)"),
        ([("a or b", False), ("not d", False)], "not (a or b) and d"),
    ],
)
def test_a_guard_keeps_what_its_conditions_mean(
    tests: list[tuple[str, bool]], guard: str | None
) -> None:
    found = syntax.guard_of([(ast.parse(t, mode="eval").body, holds) for t, holds in tests])
    assert found == guard


@pytest.mark.parametrize(
    ("text", "yields"),
    [
        ("async def f():\n    yield 1\n", True),
        ("async def f():\n    for x in y:\n        z = (yield x)\n", True),
        ("async def f():\n    return await g()\n", False),
        ("async def f():\n    def g():\n        yield 1\n    return g\n", False),
        ("async def f():\n    return lambda: (yield)\n", False),
        ("async def f():\n    class C:\n        async def g(self):\n            yield 1\n", False),
        ("def f():\n    yield 1\n", False),
        ("x = 1\n", False),
    ],
)
def test_an_async_generator_yields_in_its_own_body(text: str, yields: bool) -> None:
    assert syntax.is_async_generator(ast.parse(text).body[0]) is yields


def test_parsing_leaves_the_collector_as_it_was() -> None:
    assert gc.isenabled()
    with pytest.raises(SyntaxError):
        syntax.parse_module(b"def", "a.py")
    assert gc.isenabled()
    gc.disable()
    try:
        syntax.parse_module(b"x = 1", "a.py")
        assert not gc.isenabled()
    finally:
        gc.enable()

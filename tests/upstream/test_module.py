from __future__ import annotations

import ast
import textwrap

import pytest

from kunlun_adapt.upstream.module import ModuleTable, read_module


def _read(text: str, name: str = "sglang.a", file: str = "sglang/a.py") -> ModuleTable:
    return read_module(name, file, textwrap.dedent(text).encode())


def _guards(table: ModuleTable, name: str) -> list[str | None]:
    return [binding.guard for binding in table.scope.bindings[name]]


def test_each_branch_carries_its_guard() -> None:
    table = _read(
        """
        if a or b:
            def f(): ...
        elif not c:
            def f(x): ...
        else:
            def f(x, y): ...
        try:
            import fast as g
        except ImportError:
            g = None
        """
    )
    assert _guards(table, "f") == ["(a or b)", "not (a or b) and not c", "not (a or b) and c"]
    assert _guards(table, "g") == ["try", "except ImportError"]


def test_type_checking_branches_are_marked_and_their_else_is_plain() -> None:
    table = _read(
        """
        import typing
        if typing.TYPE_CHECKING:
            from x import A
        else:
            A = object
        if not TYPE_CHECKING:
            B = 1
        else:
            from x import C
        """
    )
    assert [(b.kind, b.type_checking, b.guard) for b in table.scope.bindings["A"]] == [
        ("import", True, None),
        ("assignment", False, None),
    ]
    assert not table.scope.bindings["B"][0].type_checking
    assert table.scope.bindings["C"][0].type_checking


def test_main_block_binds_nothing() -> None:
    table = _read("if __name__ == '__main__':\n    x = 1\nelse:\n    y = 1\n")
    assert set(table.scope.bindings) == {"y"}


@pytest.mark.parametrize(
    ("statement", "file", "source"),
    [
        ("from . import x", "sglang/p/m.py", "sglang.p"),
        ("from .q import x", "sglang/p/m.py", "sglang.p.q"),
        ("from .q import x", "sglang/p/__init__.py", "sglang.p.q"),
        ("from ..q import x", "sglang/p/m.py", "sglang.q"),
        ("from ..... import x", "sglang/p/m.py", ""),
    ],
)
def test_relative_imports_become_absolute(statement: str, file: str, source: str) -> None:
    name = file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    assert _read(statement, name, file).scope.bindings["x"][0].source == source


def test_import_statements_bind_what_python_binds() -> None:
    bound = _read("import a.b\nimport c.d as e\nimport f\n").scope.bindings
    assert {name: item[0].source for name, item in bound.items()} == {
        "a": "a",
        "e": "c.d",
        "f": "f",
    }


@pytest.mark.parametrize(
    ("text", "exported"),
    [
        ("__all__ = ['a', 'b']", ("a", "b")),
        ("__all__ = ('a',) + ('b',)\n__all__ += ['c']\n__all__.append('d')", tuple("abcd")),
        ("__all__ = ['a']\n__all__.extend(('b', 'c'))", tuple("abc")),
        ("__all__ = ['a'] + other.__all__", None),
        ("x = 1", None),
    ],
)
def test_all_is_read_where_it_is_literal(text: str, exported: tuple[str, ...] | None) -> None:
    assert _read(text).exported == exported


def test_class_bodies_nest_and_later_attributes_are_kept() -> None:
    table = _read(
        """
        class A(Base[int], pkg.Other):
            x: int = 1
            if flag:
                def f(self): ...
            class B:
                def g(self): ...
        A.h = lambda self: 1
        A.B.k = 2
        del A.h
        """
    )
    scope = table.scope.bindings["A"][0].scope
    assert scope is not None
    assert list(scope.bindings) == ["x", "f", "B"]
    assert scope.bindings["f"][0].guard == "flag"
    assert table.scope.bindings["A"][0].bases == ("Base", "pkg.Other")
    assert list(table.attached["A"].bindings) == ["h"]
    assert list(table.attached["A.B"].bindings) == ["k"]


def test_other_statements_are_walked() -> None:
    table = _read(
        """
        with open(p) as stream:
            a = 1
        for i in range(3):
            b = i
        while not done:
            c = 1
        match kind:
            case 1:
                d = 1
        x, (y, z) = 1, (2, 3)
        gone = 1
        del gone
        """
    )
    assert set(table.scope.bindings) == {"a", "b", "c", "d", "x", "y", "z"}
    assert _guards(table, "b") == ["for i in range(3)"]
    assert _guards(table, "d") == ["match kind case 1"]


def test_spans_hold_decorators_and_survive_form_feeds_and_crlf() -> None:
    source = b"\xef\xbb\xbfx = 1\r\n\x0c\r\n@wrap(\r\n    1)\r\ndef f(a):\r\n    return a\r\n"
    table = read_module("sglang.a", "sglang/a.py", source)
    assert table.text(table.scope.bindings["f"][0]).startswith("@wrap(\n    1)\ndef f(a):")


def test_statements_that_share_a_line_are_told_apart() -> None:
    table = _read("é = 'é'; x = [1,\n  2]; y = 3\nif x: z = (4,\n 5); w = 6\n")
    values = {}
    for name in "xyzw":
        node = table.node(table.scope.bindings[name][0])
        assert isinstance(node, ast.Assign)
        values[name] = ast.literal_eval(node.value)
    assert values == {"x": [1, 2], "y": 3, "z": (4, 5), "w": 6}


def test_source_encoding_is_honoured() -> None:
    table = read_module("sglang.a", "sglang/a.py", "# coding: latin-1\nx = 'é'\n".encode("latin-1"))
    assert "é" in table.text(table.scope.bindings["x"][0])


def test_what_python_would_not_take_raises() -> None:
    with pytest.raises(SyntaxError):
        _read("def f(:\n")

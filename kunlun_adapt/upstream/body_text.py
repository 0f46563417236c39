"""The text that stands for a syntax tree when its body is hashed.

It has no comments, formatting or docstrings in it. The walk is ours, not `ast.dump`, whose text
differs from one Python version to the next. The commonest nodes are spelled out here: a release
has ten million of them, and one generic walk would take twice the time.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

_SKIPPED_FIELDS = frozenset({"ctx", "kind", "type_comment", "type_ignores"})


def without_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    """The statements of a body that do something."""
    first = body[0] if body else None
    if (
        isinstance(first, ast.Expr)
        and isinstance(first.value, ast.Constant)
        and isinstance(first.value.value, str)
    ):
        # A function that only has a docstring does what `pass` does.
        return body[1:] or [ast.Pass()]
    return body


class BodyText:
    """Spells trees; a subclass may look at the nodes as they pass."""

    def __init__(self) -> None:
        self._makers: dict[type, Callable[[Any], str]] = {
            ast.Name: lambda node: f"(Name id={node.id!r})",
            ast.Constant: _constant,
            ast.Attribute: self._attribute,
            ast.Call: self.call,
            ast.keyword: self._keyword,
            ast.Expr: lambda node: f"(Expr value={self.text(node.value)})",
            ast.Subscript: self._subscript,
            ast.BinOp: self._binary,
            ast.Assign: self.assign,
            ast.FunctionDef: self.definition,
            ast.AsyncFunctionDef: self.definition,
            ast.ClassDef: self.definition,
            ast.Module: self._module,
        }
        self._fields: dict[type, tuple[str, ...]] = {}

    def text(self, node: ast.AST) -> str:
        """The text of one node and all below it."""
        maker = self._makers.get(type(node))
        return self.plain(node) if maker is None else maker(node)

    def items(self, nodes: Sequence[Any]) -> str:
        """The text of a list of nodes, names or Nones."""
        makers = self._makers
        parts = []
        for node in nodes:
            maker = makers.get(type(node))
            if maker is not None:
                parts.append(maker(node))
            elif isinstance(node, ast.AST):
                parts.append(self.plain(node))
            else:
                parts.append(repr(node))
        parts.append("]")
        return "[" + ",".join(parts) if nodes else "[]"

    def plain(self, node: ast.AST, body: str | None = None) -> str:
        """The text of a node of any kind, field by field; `body` is that of its body if known."""
        kind = type(node)
        fields = self._fields.get(kind)
        if fields is None:
            fields = tuple(name for name in kind._fields if name not in _SKIPPED_FIELDS)
            self._fields[kind] = fields
        parts = [f"({kind.__name__}"]
        for field in fields:
            value = getattr(node, field, None)
            if value is None:
                continue
            if body is not None and field == "body":
                parts.append(f" body={body}")
            elif isinstance(value, list):
                if value:
                    parts.append(f" {field}={self.items(value)}")
            elif isinstance(value, ast.AST):
                parts.append(f" {field}={self.text(value)}")
            else:
                parts.append(f" {field}={value!r}")
        parts.append(")")
        return "".join(parts)

    def call(self, node: ast.Call) -> str:
        args = f" args={self.items(node.args)}" if node.args else ""
        keywords = f" keywords={self.items(node.keywords)}" if node.keywords else ""
        return f"(Call func={self.text(node.func)}{args}{keywords})"

    def assign(self, node: ast.Assign) -> str:
        return f"(Assign targets={self.items(node.targets)} value={self.text(node.value)})"

    def definition(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> str:
        return self.plain(node, self.body(node))

    def body(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> str:
        """The text of what a definition does."""
        return self.items(without_docstring(node.body))

    def _attribute(self, node: ast.Attribute) -> str:
        return f"(Attribute value={self.text(node.value)} attr={node.attr!r})"

    def _keyword(self, node: ast.keyword) -> str:
        name = "" if node.arg is None else f" arg={node.arg!r}"
        return f"(keyword{name} value={self.text(node.value)})"

    def _subscript(self, node: ast.Subscript) -> str:
        return f"(Subscript value={self.text(node.value)} slice={self.text(node.slice)})"

    def _binary(self, node: ast.BinOp) -> str:
        left, right = self.text(node.left), self.text(node.right)
        return f"(BinOp left={left} op=({type(node.op).__name__}) right={right})"

    def _module(self, node: ast.Module) -> str:
        body = without_docstring(node.body)
        return f"(Module body={self.items(body)})" if body else "(Module)"


def _constant(node: ast.Constant) -> str:
    return "(Constant)" if node.value is None else f"(Constant value={node.value!r})"

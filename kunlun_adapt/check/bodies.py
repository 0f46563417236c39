"""The syntax trees of single upstream definitions, made on demand."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from kunlun_adapt.check.context import Context
from kunlun_adapt.upstream import Missing, Symbol

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


def function(context: Context, symbol: Symbol | Missing | None) -> FunctionNode | None:
    """Return the definition of an upstream function or method."""
    if context.reader is None or not isinstance(symbol, Symbol):
        return None
    node = context.reader.statement(symbol)
    return node if isinstance(node, FunctionNode) else None


def called_names(node: ast.AST) -> set[str]:
    """Return what a body calls by a bare name, or on `self` or `cls`."""
    return {name for call in _calls(node) if (name := _name(call.func)) is not None}


def _calls(node: ast.AST) -> Iterator[ast.Call]:
    return (item for item in ast.walk(node) if isinstance(item, ast.Call))


def _name(called: ast.expr) -> str | None:
    if isinstance(called, ast.Name):
        return called.id
    if isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name):
        return called.attr if called.value.id in ("self", "cls") else None
    return None

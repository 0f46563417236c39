"""Derived names: small integer and boolean formulas over what conditions may read."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kunlun_adapt.plan.conditions import ConditionError, parse_subject

_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


@dataclass(frozen=True, slots=True)
class Derived:
    """A named formula: its canonical Python text, and the subjects and names that it reads."""

    name: str
    text: str
    subjects: tuple[str, ...]
    tree: ast.expr

    def value(self, values: Mapping[str, Any]) -> Any:
        """Compute the formula for values keyed by subject text; ZeroDivisionError may be raised."""
        return _compute(self.tree, values)


def parse_derive(name: str, text: str) -> Derived:
    """Read one formula. Raises ConditionError for anything but integers and comparisons."""
    try:
        tree = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ConditionError(f"{text!r} is not a formula") from error
    subjects: list[str] = []
    python = _canonical(tree, subjects, text)
    return Derived(name, python, tuple(dict.fromkeys(subjects)), tree)


def _canonical(node: ast.expr, subjects: list[str], text: str) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, bool)):
        return repr(node.value)
    if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)):
        subject = parse_subject(ast.unparse(node).replace(" ", ""))
        if subject.scope != "call":
            raise ConditionError(f"{text!r}: {subject.text} cannot be read in a formula")
        subjects.append(subject.text)
        return subject.expression()
    if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
        left = _canonical(node.left, subjects, text)
        right = _canonical(node.right, subjects, text)
        sign = {"Add": "+", "Sub": "-", "Mult": "*", "FloorDiv": "//", "Mod": "%"}
        return f"({left} {sign[type(node.op).__name__]} {right})"
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _COMPARE:
        left = _canonical(node.left, subjects, text)
        right = _canonical(node.comparators[0], subjects, text)
        sign = {"Eq": "==", "NotEq": "!=", "Lt": "<", "LtE": "<=", "Gt": ">", "GtE": ">="}
        return f"({left} {sign[type(node.ops[0]).__name__]} {right})"
    raise ConditionError(f"{text!r}: only + - * // %, comparisons and what conditions read")


def _compute(node: ast.expr, values: Mapping[str, Any]) -> Any:
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.BinOp):
        return _BINARY[type(node.op)](_compute(node.left, values), _compute(node.right, values))
    if isinstance(node, ast.Compare):
        left, right = _compute(node.left, values), _compute(node.comparators[0], values)
        return _COMPARE[type(node.ops[0])](left, right)
    return values[ast.unparse(node).replace(" ", "")]

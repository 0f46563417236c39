"""Derived names: small integer and boolean formulas over what conditions may read."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from kunlun_adapt.plan.subject import ConditionError, parse_subject

LARGEST = 1 << 63
LONGEST = 400

_BINARY: dict[type[ast.operator], tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Add: ("+", operator.add),
    ast.Sub: ("-", operator.sub),
    ast.Mult: ("*", operator.mul),
    ast.FloorDiv: ("//", operator.floordiv),
    ast.Mod: ("%", operator.mod),
}
_COMPARE: dict[type[ast.cmpop], tuple[str, Callable[[Any, Any], bool]]] = {
    ast.Eq: ("==", operator.eq),
    ast.NotEq: ("!=", operator.ne),
    ast.Lt: ("<", operator.lt),
    ast.LtE: ("<=", operator.le),
    ast.Gt: (">", operator.gt),
    ast.GtE: (">=", operator.ge),
}


@dataclass(frozen=True, slots=True)
class Derived:
    """A named formula: its canonical Python text, and the subjects and names that it reads."""

    name: str
    text: str
    subjects: tuple[str, ...]
    tree: ast.expr

    @property
    def kind(self) -> str:
        """Return "bool" for a comparison, else "int"."""
        flag = isinstance(self.tree, ast.Constant) and isinstance(self.tree.value, bool)
        return "bool" if flag or isinstance(self.tree, ast.Compare) else "int"

    def value(self, values: Mapping[str, Any]) -> Any:
        """Compute the formula for values keyed by subject text; ZeroDivisionError may be raised."""
        return _compute(self.tree, values)


# The same few formulas are read for each tier of an operator; their trees are only looked at.
@lru_cache(maxsize=1024)
def parse_derive(name: str, text: str) -> Derived:
    """Read one formula. Raises ConditionError for anything but integers and comparisons."""
    if len(text) > LONGEST:
        raise ConditionError(f"a formula of {len(text)} characters; use at most {LONGEST}")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ConditionError(
            f"{text!r} is not a formula: write for example x.shape[0] * x.shape[1]"
        ) from error
    subjects: list[str] = []
    python = _canonical(tree, subjects, text)
    return Derived(name, python, tuple(dict.fromkeys(subjects)), tree)


def subject_text(node: ast.expr) -> str:
    """Return the subject that a node reads, as conditions spell it."""
    return ast.unparse(node).replace(" ", "")


def _canonical(node: ast.expr, subjects: list[str], text: str) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, int) and node.value < LARGEST:
        return repr(node.value)
    if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)):
        subject = parse_subject(subject_text(node))
        if subject.scope != "call" or subject.prop in ("dtype", "device"):
            raise ConditionError(f"{text!r}: {subject.text} cannot be read in a formula")
        subjects.append(subject.text)
        return subject.expression()
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return f"(-{_canonical(node.operand, subjects, text)})"
    if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
        left = _canonical(node.left, subjects, text)
        right = _canonical(node.right, subjects, text)
        return f"({left} {_BINARY[type(node.op)][0]} {right})"
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _COMPARE:
        left = _canonical(node.left, subjects, text)
        right = _canonical(node.comparators[0], subjects, text)
        return f"({left} {_COMPARE[type(node.ops[0])][0]} {right})"
    raise ConditionError(
        f"{text!r}: a formula has whole numbers, + - * // %, one comparison, and what conditions "
        "read; a chain of comparisons or an `and` is two derived names"
    )


def _compute(node: ast.expr, values: Mapping[str, Any]) -> Any:
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.UnaryOp):
        return -_compute(node.operand, values)
    if isinstance(node, ast.BinOp):
        apply = _BINARY[type(node.op)][1]
        return apply(_compute(node.left, values), _compute(node.right, values))
    if isinstance(node, ast.Compare):
        compare = _COMPARE[type(node.ops[0])][1]
        return compare(_compute(node.left, values), _compute(node.comparators[0], values))
    return values[subject_text(node)]

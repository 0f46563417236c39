"""Conditions that say whether a graph is being captured, and what is only reached outside."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence

# `is_current_stream_capturing`, `capturing`, `get_is_capture_mode`, `in_capture`; and no list of
# `capture_sizes`.
_WORD = re.compile(r"capturing|(^|_)(is|in|under|during|while)_\w*captur")
_NEGATED = re.compile(r"(^|_)(not|no|non|outside|without)_\w*captur")

Aliases = Mapping[str, ast.expr]


def outside(test: ast.expr, truth: bool, aliases: Aliases) -> bool:
    """Tell whether a condition that turns out so means that no graph is being captured.

    `aliases` holds what names stand for, as in `eager = not capturing`.
    """
    if isinstance(test, ast.NamedExpr):
        return outside(test.value, truth, aliases)
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return outside(test.operand, not truth, aliases)
    if isinstance(test, ast.BoolOp):
        # All parts of a true `and` are true, and all of a false `or` false; else only one is.
        settled = isinstance(test.op, ast.And) == truth
        return (any if settled else all)(outside(v, truth, aliases) for v in test.values)
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        other = test.comparators[0]
        if isinstance(other, ast.Constant) and isinstance(other.value, bool):
            same = isinstance(test.ops[0], ast.Is | ast.Eq)
            return outside(test.left, truth == (other.value == same), aliases)
    if isinstance(test, ast.Name) and test.id in aliases:
        rest = {name: value for name, value in aliases.items() if name != test.id}
        if outside(aliases[test.id], truth, rest):
            return True
    word = _last_name(test).lower()
    if _NEGATED.search(word):
        return truth
    return not truth and _WORD.search(word) is not None


def leaves(statement: ast.stmt, aliases: Aliases) -> bool:
    """Tell whether what follows a statement in its block is only reached outside a capture."""
    if isinstance(statement, ast.Assert):
        return outside(statement.test, True, aliases)
    if not isinstance(statement, ast.If):
        return False
    return (_ends(statement.body) and outside(statement.test, False, aliases)) or (
        _ends(statement.orelse) and outside(statement.test, True, aliases)
    )


def _ends(body: Sequence[ast.stmt]) -> bool:
    """Tell whether nothing is reached after a block."""
    last = body[-1] if body else None
    if isinstance(last, ast.If):
        return _ends(last.body) and _ends(last.orelse)
    return isinstance(last, ast.Return | ast.Raise | ast.Continue | ast.Break)


def _last_name(node: ast.expr) -> str:
    """Return the name at the end of `a.b.name` or `a.b.name()`."""
    if isinstance(node, ast.Call):
        node = node.func
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""

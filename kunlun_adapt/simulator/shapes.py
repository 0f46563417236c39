"""Shape patterns such as ``[M, 2*d]``, matched so that one symbol has one value across a call."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any

_BINARY: dict[type[ast.operator], Callable[[int, int], int]] = {
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


class PatternError(ValueError):
    """Raised for a pattern or limit that cannot be read: the contract's fault, not a call's."""


@dataclass(frozen=True, slots=True)
class Shape:
    """One shape pattern: an optional run of leading dimensions, then dimension expressions."""

    text: str
    leading: str | None
    dims: tuple[str, ...]


def parse_shape(text: str) -> Shape:
    """Read ``[*B, M, 2*d]``: ``*B`` is any number of leading dimensions, ``_`` is any size.

    A dimension is an integer expression over symbols (``2*d``, ``E+1``, ``H*D``).
    Raises PatternError for anything else.
    """
    inner = text.strip()
    if not (inner.startswith("[") and inner.endswith("]")):
        raise PatternError(f"shape pattern {text!r} is not in brackets")
    parts = [part.strip() for part in inner[1:-1].split(",") if part.strip()]
    leading = None
    if parts and parts[0].startswith("*"):
        leading = parts.pop(0)
    for part in parts:
        _parse(part)
    return Shape(text, leading, tuple(parts))


def match_shape(
    shape: Shape,
    actual: Sequence[int],
    symbols: MutableMapping[str, int],
    runs: MutableMapping[str, tuple[int, ...]],
) -> str | None:
    """Match one tensor's shape, binding symbols; return what is wrong, or None.

    ``symbols`` and ``runs`` (values of leading runs) are extended in place.
    """
    wanted = len(shape.dims)
    if len(actual) < wanted or (shape.leading is None and len(actual) != wanted):
        return f"has {len(actual)} dimensions, expected {shape.text}"
    split = len(actual) - wanted
    if shape.leading is not None and shape.leading != "*":
        run = tuple(actual[:split])
        if runs.setdefault(shape.leading, run) != run:
            return (
                f"has leading dimensions {run}, expected {shape.text} "
                f"with {shape.leading}={runs[shape.leading]}"
            )
    for expression, size in zip(shape.dims, actual[split:], strict=True):
        problem = _match_dim(expression, size, symbols)
        if problem:
            return f"is {list(actual)}, expected {shape.text}: {problem}"
    return None


def holds(expression: str, names: Mapping[str, object]) -> bool:
    """Evaluate a limit such as ``M <= 1024 and d % 8 == 0`` over symbols and scalar arguments."""
    return bool(_evaluate(_parse(expression), names))


def _match_dim(expression: str, size: int, symbols: MutableMapping[str, int]) -> str | None:
    if expression == "_":
        return None
    if expression.isidentifier() and expression not in symbols:
        symbols[expression] = size
        return None
    tree = _parse(expression)
    unknown = sorted(_names(tree) - symbols.keys())
    if not unknown:
        expected = _evaluate(tree, symbols)
        if expected == size:
            return None
        names = [] if isinstance(tree, ast.Name) else sorted(_names(tree))
        known = ", ".join(f"{name}={symbols[name]}" for name in names)
        return f"{expression}={expected}{f' ({known})' if known else ''}, got {size}"
    if len(unknown) > 1:
        return None  # not decidable yet; a later argument binds one of them and is checked
    return _solve(tree, expression, unknown[0], size, symbols)


def _solve(
    tree: ast.expr, text: str, name: str, size: int, symbols: MutableMapping[str, int]
) -> str | None:
    """Bind the one unknown of a linear expression (2*d, E+1) to the value that gives ``size``."""
    at_zero = _integer(tree, {**symbols, name: 0})
    slope = _integer(tree, {**symbols, name: 1}) - at_zero
    if slope == 0 or (size - at_zero) % slope or (size - at_zero) // slope < 0:
        return f"no {name} makes {text} equal {size}"
    symbols[name] = (size - at_zero) // slope
    return None


def _integer(tree: ast.expr, names: Mapping[str, object]) -> int:
    value = _evaluate(tree, names)
    if not isinstance(value, int):
        raise PatternError(f"{ast.unparse(tree)} is not an integer expression")
    return value


def _parse(text: str) -> ast.expr:
    try:
        return ast.parse(text, mode="eval").body
    except SyntaxError as error:
        raise PatternError(f"cannot read {text!r}: {error.msg}") from error


def _names(tree: ast.expr) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def _evaluate(tree: ast.expr, names: Mapping[str, object]) -> object:
    if isinstance(tree, ast.Constant):
        return tree.value
    if isinstance(tree, ast.Name):
        if tree.id not in names:
            raise PatternError(f"unknown name {tree.id!r}")
        return names[tree.id]
    if isinstance(tree, ast.BinOp) and type(tree.op) in _BINARY:
        left, right = _evaluate(tree.left, names), _evaluate(tree.right, names)
        return _BINARY[type(tree.op)](left, right)  # type: ignore[arg-type]
    if isinstance(tree, ast.BoolOp):
        values = (bool(_evaluate(value, names)) for value in tree.values)
        return all(values) if isinstance(tree.op, ast.And) else any(values)
    if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.Not):
        return not _evaluate(tree.operand, names)
    if isinstance(tree, ast.Compare):
        left = _evaluate(tree.left, names)
        for op, comparator in zip(tree.ops, tree.comparators, strict=True):
            right = _evaluate(comparator, names)
            if not _COMPARE[type(op)](left, right):
                return False
            left = right
        return True
    raise PatternError(f"cannot evaluate {ast.unparse(tree)!r}")

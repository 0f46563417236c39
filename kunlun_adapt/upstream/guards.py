"""Whether a guard of upstream's can hold where the platform reports as one device or another."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

_DEVICE = re.compile(
    r"_?is_(cpu|cuda|cuda_alike|hip|hpu|mlx|mps|musa|npu|rocm|tpu|xpu)\Z", re.IGNORECASE
)


def holds(guard: str | None, reports_as: str) -> bool | None:
    """Tell whether a guard holds where the platform reports as a device; None: it may.

    A card that reports as CUDA passes `is_cuda()`; no profile passes a question for another
    vendor's device. What is neither, such as `try` or a version, may hold.
    """
    if guard is None:
        return True
    return _all(_part(part, reports_as) for part in _parts(guard))


def _parts(guard: str) -> Iterator[str]:
    """Split at each `and` outside of parentheses: not all parts are expressions (`try`)."""
    depth, start = 0, 0
    for match in re.finditer(r"[(\[{]|[)\]}]| and ", guard):
        text = match[0]
        if text == " and ":
            if depth == 0:
                yield guard[start : match.start()]
                start = match.end()
        else:
            depth += 1 if text in "([{" else -1
    yield guard[start:]


def _part(text: str, device: str) -> bool | None:
    try:
        return _value(ast.parse(text, mode="eval").body, device)
    except (SyntaxError, ValueError, RecursionError):
        return None


def _value(node: ast.expr, device: str) -> bool | None:
    if isinstance(node, ast.BoolOp):
        values = [_value(item, device) for item in node.values]
        if isinstance(node.op, ast.And):
            return _all(values)
        found = _all(None if value is None else not value for value in values)
        return None if found is None else not found
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        found = _value(node.operand, device)
        return None if found is None else not found
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        return node.value
    if isinstance(node, ast.Call) and not node.args and not node.keywords:
        node = node.func
    asked = _DEVICE.match(node.id) if isinstance(node, ast.Name) else None
    if asked is None:
        return None
    kind = asked[1].lower()
    # `is_cpu()` asks for upstream's own CPU engine, which an environment variable switches on.
    return device == "cuda" and kind in ("cuda", "cuda_alike")


def _all(values: Iterable[bool | None]) -> bool | None:
    known = list(values)
    if False in known:
        return False
    return None if None in known else True

"""Whether two annotations can be the same type, as far as their text tells."""

from __future__ import annotations

import ast

from kunlun_adapt.upstream.syntax import last_name

CONCRETE = {
    "None", "bool", "bytes", "device", "dict", "dtype", "float", "frozenset", "int", "list", "set",
    "str", "tuple",
}  # fmt: skip
"""Types of which none is another one's, but for the numbers; what else there is may be anything."""

WIDER = {"bool": {"int", "float"}, "int": {"float"}}

_SAME = {"Dict": "dict", "FrozenSet": "frozenset", "List": "list", "Set": "set", "Tuple": "tuple"}


def differ(ours: ast.expr, theirs: ast.expr) -> bool:
    """Tell whether what we return is surely not always what they promise."""
    mine, wanted = types_of(ours), types_of(theirs)
    if mine is None or wanted is None:
        return False
    return any(not ({name} | WIDER.get(name, set())) & wanted for name in mine)


def types_of(node: ast.expr) -> set[str] | None:
    """Return the concrete types that an annotation allows, or None where one is unknown."""
    if isinstance(node, ast.Constant):
        if node.value is None:
            return {"None"}
        if not isinstance(node.value, str):
            return None
        try:
            return types_of(ast.parse(node.value, mode="eval").body)
        except SyntaxError:
            return None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return _all([node.left, node.right])
    if isinstance(node, ast.Subscript):
        items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        head = last_name(node.value)
        if head == "Optional":
            return _all([*items, ast.Constant(None)])
        return _all(items) if head == "Union" else types_of(node.value)
    name = _SAME.get(last_name(node), last_name(node))
    return {name} if name in CONCRETE else None


def _all(items: list[ast.expr]) -> set[str] | None:
    found: set[str] = set()
    for item in items:
        types = types_of(item)
        if types is None:
            return None
        found |= types
    return found

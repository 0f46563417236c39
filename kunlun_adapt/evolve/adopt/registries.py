"""Which table of upstream's a registration function fills."""

from __future__ import annotations

import ast
from typing import Any

from kunlun_adapt.upstream import Resolver, Symbol


def registry_of(target: str, resolver: Resolver) -> dict[str, Any] | None:
    """Return the `readback` of a registration function: the table that its body fills.

    None where it does not exist or fills none that a path could name.
    """
    symbol = resolver.resolve(target)
    node = resolver.statement(symbol) if isinstance(symbol, Symbol) else None
    if not isinstance(symbol, Symbol) or not isinstance(node, ast.FunctionDef):
        return None
    owner = symbol.qualname.rpartition(".")[0]
    for inner in ast.walk(node):
        table = _filled(inner)
        if table is None:
            continue
        path = _path(table, symbol.module, owner, node)
        if path is not None and isinstance(resolver.resolve(path), Symbol):
            return {"target": path}
    return None


def _filled(node: ast.AST) -> ast.expr | None:
    """Return the container that a statement puts an entry into."""
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
        return node.targets[0].value
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.value if node.func.attr in ("append", "add", "setdefault") else None
    return None


def _path(table: ast.expr, module: str, owner: str, node: ast.AST) -> str | None:
    if isinstance(table, ast.Name):
        local = any(
            isinstance(n, ast.Name) and n.id == table.id and isinstance(n.ctx, ast.Store)
            for n in ast.walk(node)
        )
        return None if local else f"{module}.{table.id}"
    if isinstance(table, ast.Attribute) and isinstance(table.value, ast.Name):
        if table.value.id in ("cls", owner) and owner:
            return f"{module}.{owner}.{table.attr}"
        if table.value.id not in ("self", "cls"):
            return f"{module}.{table.value.id}.{table.attr}"
    return None

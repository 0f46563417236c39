"""Which table of upstream's a registration function fills."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from kunlun_adapt.upstream import Resolver, Symbol

_DEEPEST = 3


@dataclass(frozen=True, slots=True)
class Registry:
    """A table of upstream's; `key` is the parameter by which it is filled.

    None where that is no parameter as it is; a list has no keys. `spreads` tells that the function
    adds each entry of a list that it gets.
    """

    table: str
    key: str | None
    is_list: bool
    spreads: bool = False


def registry_of(target: str, resolver: Resolver, depth: int = _DEEPEST) -> Registry | None:
    """Return the table that a registration function fills, itself or by calling another one.

    None where the function does not exist or fills none that a path could name.
    """
    symbol = resolver.resolve(target)
    node = resolver.statement(symbol) if isinstance(symbol, Symbol) else None
    if not isinstance(symbol, Symbol) or not isinstance(node, ast.FunctionDef):
        return None
    owner = symbol.qualname.rpartition(".")[0]
    for table, key, spreads in _filled(node):
        path = _path(table, symbol.module, owner, node)
        if path is not None and isinstance(resolver.resolve(path), Symbol):
            named = key.id if isinstance(key, ast.Name) else None
            known = [a.arg for a in (*node.args.posonlyargs, *node.args.args)]
            return Registry(path, named if named in known else None, key is None, spreads)
    if depth:
        for name in _called(node):
            inner = f"{symbol.module}.{name}"
            found = registry_of(inner, resolver, depth - 1) if inner != target else None
            if found is not None:
                return Registry(found.table, None, found.is_list, found.spreads)
    return None


def _filled(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr | None, bool]]:
    """Yield the containers that a body puts entries into, their keys, and whether many at once."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Assign) and isinstance(inner.targets[0], ast.Subscript):
            yield inner.targets[0].value, inner.targets[0].slice, False
        elif isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute) and inner.args:
            if inner.func.attr in ("append", "add"):
                yield inner.func.value, None, False
            elif inner.func.attr == "extend":
                yield inner.func.value, None, True
            elif inner.func.attr == "setdefault":
                yield inner.func.value, inner.args[0], False


def _called(node: ast.AST) -> Iterator[str]:
    """Yield the registration functions that a body calls, by their names in its module."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Call):
            name = ast.unparse(inner.func)
            if (
                name.rpartition(".")[2].startswith("register")
                and name.replace(".", "").isidentifier()
            ):
                yield name


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

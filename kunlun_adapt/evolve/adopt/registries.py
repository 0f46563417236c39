"""Which table of upstream's a registration function fills."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from kunlun_adapt.upstream import Resolver, Symbol

_DEEPEST = 3
_HELD = ("constant", "attribute")
"""Kinds of names whose values are not what a `def` or `class` says."""
ADDS = ("add_", "extend_")


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


def called_behind(path: str, resolver: Resolver, depth: int = _DEEPEST) -> str:
    """Return what a name of upstream's calls: of `add = CHOICES.extend` the path of `extend`.

    The path itself where it is a function, or where the text does not tell.
    """
    symbol = resolver.resolve(path)
    if (
        not isinstance(symbol, Symbol)
        or symbol.kind not in _HELD
        or symbol.guard
        or symbol.variants
    ):
        return path
    given = getattr(resolver.statement(symbol), "value", None)
    if isinstance(given, ast.Name) and depth:
        return called_behind(f"{symbol.module}.{given.id}", resolver, depth - 1)
    if not isinstance(given, ast.Attribute):
        return path
    table = _path(given.value, symbol.module, symbol.qualname.rpartition(".")[0], given)
    found = resolver.resolve(table) if table is not None else None
    return f"{table}.{given.attr}" if isinstance(found, Symbol) else path


def hides_its_table(path: str, resolver: Resolver) -> bool:
    """Tell whether a name adds to something, as far as its text tells, but not to what.

    A function that returns a value is called for that.
    """
    symbol = resolver.resolve(path)
    if not isinstance(symbol, Symbol) or symbol.kind in _HELD:
        return isinstance(symbol, Symbol)
    if symbol.kind != "function" or not path.rpartition(".")[2].startswith(ADDS):
        return False
    node = resolver.statement(symbol)
    inner = ast.walk(node) if node is not None else ()
    return not any(isinstance(n, ast.Return) and n.value is not None for n in inner)


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

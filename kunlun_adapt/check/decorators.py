"""Whether a decorator hands back the function that it is given, so that its signature holds."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

Node = ast.FunctionDef | ast.AsyncFunctionDef
Follow = Callable[[ast.expr], Node | None]
"""Returns the function that an expression names in the decorator's module, if one can tell."""

_DEEPEST = 4


def hands_back(decorator: ast.expr, follow: Follow) -> bool:
    """Tell whether a decorator is known to return the very function that it decorates.

    That is what decorators do which only register a function: `@register(name)`.
    """
    if isinstance(decorator, ast.Call):
        factory = follow(decorator.func)
        return factory is not None and _makes(factory, follow, _DEEPEST)
    node = follow(decorator)
    return node is not None and _returns_first(node)


def _returns_first(node: Node) -> bool:
    parameters = [*node.args.posonlyargs, *node.args.args]
    returned = list(_returns(node))
    return bool(parameters and returned) and all(
        isinstance(value, ast.Name) and value.id == parameters[0].arg for value in returned
    )


def _makes(factory: Node, follow: Follow, depth: int) -> bool:
    """Tell whether all that a function returns are decorators that hand back what they get."""
    inner = {n.name: n for n in factory.body if isinstance(n, Node)}
    returned = list(_returns(factory))
    for value in returned:
        if isinstance(value, ast.Name) and value.id in inner:
            if not _returns_first(inner[value.id]):
                return False
        elif isinstance(value, ast.Call) and depth:
            other = follow(value.func)
            if other is None or other is factory or not _makes(other, follow, depth - 1):
                return False
        else:
            return False
    return bool(returned)


def _returns(node: Node) -> Iterator[ast.expr | None]:
    """Yield what a body returns itself, not what the functions inside it do."""
    queue: list[ast.AST] = list(node.body)
    while queue:
        one = queue.pop(0)
        if isinstance(one, ast.Return):
            yield one.value
        elif not isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            queue += ast.iter_child_nodes(one)

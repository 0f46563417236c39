"""Tells which conditions would read what a tensor holds, rather than what the host knows of it.

Such a read makes the host wait for the device, and a captured graph keeps the first answer. The
condition language cannot express it; what is written all the same is recognised here, so that it
can be refused for its own reason and not as a misspelling.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping

from kunlun_adapt.plan.params import Param
from kunlun_adapt.plan.subject import Subject
from kunlun_adapt.plan.value_tests import OneOf, Presence, Test

_READERS = frozenset(
    {
        "all", "allclose", "amax", "amin", "any", "argmax", "argmin", "argsort", "bool",
        "count_nonzero", "cpu", "cumsum", "data", "data_ptr", "eq", "equal", "float", "ge",
        "gt", "int", "isinf", "isnan", "item", "le", "lt", "max", "mean", "median", "min",
        "nonzero", "norm", "numpy", "prod", "sort", "std", "storage", "sum", "tolist", "topk",
        "unique", "untyped_storage", "values", "var",
    }
)  # fmt: skip
"""Attributes of a tensor that look at, or move, what it holds; `data_ptr` pins its address."""

_ATTRIBUTE = re.compile(r"(?P<root>[A-Za-z_][A-Za-z0-9_]*)\.(?P<name>[A-Za-z_][A-Za-z0-9_]*)")
_ELEMENT = re.compile(r"(?P<root>[A-Za-z_][A-Za-z0-9_]*)\s*\[")


def tensor_read(text: str, params: Mapping[str, Param]) -> str | None:
    """Return the tensor parameter whose values a subject or a path asks for, or None."""
    attribute, element = _ATTRIBUTE.match(text), _ELEMENT.match(text)
    if attribute is not None and attribute["name"] in _READERS:
        return _tensor(attribute["root"], params)
    return _tensor(element["root"], params) if element is not None else None


def tensor_read_in_formula(text: str, params: Mapping[str, Param]) -> str | None:
    """Return the tensor parameter whose values a formula computes with, or None."""
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return next((name for node in _whole(tree) if (name := _read(node, params))), None)


def asks_for_values(subject: Subject, test: Test, params: Mapping[str, Param]) -> bool:
    """Tell whether a condition compares a tensor itself with something."""
    bare = subject.scope == "call" and subject.prop is None
    absent = isinstance(test, OneOf) and all(value is None for value in test.values)
    tensor = _tensor(subject.root, params) is not None
    return bare and tensor and not absent and not isinstance(test, Presence)


def _whole(tree: ast.expr) -> list[ast.expr]:
    """Return the outermost names, attributes, elements and calls of a formula."""
    found: list[ast.expr] = []
    pending: list[ast.AST] = [tree]
    while pending:
        node = pending.pop(0)
        if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)):
            found.append(node)
        elif isinstance(node, ast.Call):
            pending = [node.func, *node.args, *pending]
        else:
            pending = [*ast.iter_child_nodes(node), *pending]
    return found


def _read(node: ast.expr, params: Mapping[str, Param]) -> str | None:
    if isinstance(node, ast.Name):
        return _tensor(node.id, params)
    return tensor_read(ast.unparse(node), params)


def _tensor(name: str, params: Mapping[str, Param]) -> str | None:
    param = params.get(name)
    return name if param is not None and param.kind == "Tensor" else None

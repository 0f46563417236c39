"""What a module-level `__getattr__` serves, read off its text.

Real modules write it as a chain of `if name == "X"` with an import inside, or as a look-up in a
dictionary from name to submodule. Anything else is left out and the name does not resolve.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field

from kunlun_adapt.upstream import syntax


@dataclass(frozen=True, slots=True)
class LazyName:
    """One name that `__getattr__` serves.

    `modules` are the modules it may come from, most likely first, and `attribute` its name
    there; both empty where the value is computed.
    """

    line: int
    modules: tuple[str, ...] = ()
    attribute: str = ""


@dataclass(slots=True)
class LazyNames:
    """All names that a module's `__getattr__` serves, and the line of the function."""

    line: int
    names: dict[str, LazyName] = field(default_factory=dict)


def read_module_getattr(
    tree: ast.Module, absolute: Callable[[ast.ImportFrom], str]
) -> LazyNames | None:
    """Read a module's `__getattr__`; None where it has none.

    `absolute` gives the module of an `ImportFrom` node as an absolute dotted name.
    """
    function = next(
        (
            node
            for node in tree.body
            if isinstance(node, ast.FunctionDef) and node.name == "__getattr__"
        ),
        None,
    )
    if function is None or not function.args.args:
        return None
    asked = function.args.args[0].arg
    found = LazyNames(function.lineno)
    tables = {
        target.id: value
        for target, value in _module_assignments(tree)
        if isinstance(value, ast.Dict | ast.List | ast.Tuple | ast.Set | ast.Call)
    }
    for node in ast.walk(function):
        if isinstance(node, ast.If):
            for name in _compared(node.test, asked):
                source, attribute = _imported(node.body, name, absolute)
                found.names.setdefault(
                    name, LazyName(node.lineno, (source,) if source else (), attribute)
                )
        table = _looked_up(node, asked)
        if table in tables:
            for name, entry in _table_entries(tables[table]):
                found.names.setdefault(name, entry)
    return found


def _module_assignments(tree: ast.Module) -> list[tuple[ast.Name, ast.expr]]:
    found: list[tuple[ast.Name, ast.expr]] = []
    for node in tree.body:
        if isinstance(node, ast.Assign):
            found += [(item, node.value) for item in node.targets if isinstance(item, ast.Name)]
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value:
            found.append((node.target, node.value))
    return found


def _compared(test: ast.expr, asked: str) -> tuple[str, ...]:
    """The literals that a condition compares the asked name with."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or):
        return tuple(name for part in test.values for name in _compared(part, asked))
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return ()
    if not isinstance(test.left, ast.Name) or test.left.id != asked:
        return ()
    other = test.comparators[0]
    if isinstance(test.ops[0], ast.Eq):
        name = syntax.string_of(other)
        return () if name is None else (name,)
    if isinstance(test.ops[0], ast.In):
        return syntax.strings_of(other) or ()
    return ()


def _imported(
    body: list[ast.stmt], name: str, absolute: Callable[[ast.ImportFrom], str]
) -> tuple[str, str]:
    for statement in body:
        for node in ast.walk(statement):
            if not isinstance(node, ast.ImportFrom):
                continue
            for item in node.names:
                if name in (item.name, item.asname):
                    return absolute(node), item.name
    return "", ""


def _looked_up(node: ast.AST, asked: str) -> str | None:
    """The module-level table that an expression looks the asked name up in."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        first = node.args[0] if node.args else None
        if node.func.attr == "get" and isinstance(first, ast.Name) and first.id == asked:
            return syntax.dotted(node.func.value)
    if isinstance(node, ast.Subscript) and syntax.dotted(node.slice) == asked:
        return syntax.dotted(node.value)
    if (
        isinstance(node, ast.Compare)
        and syntax.dotted(node.left) == asked
        and isinstance(node.ops[0], ast.In)
    ):
        return syntax.dotted(node.comparators[0])
    return None


def _table_entries(table: ast.expr) -> list[tuple[str, LazyName]]:
    if not isinstance(table, ast.Dict):
        return [(name, LazyName(table.lineno)) for name in syntax.strings_of(table) or ()]
    found: list[tuple[str, LazyName]] = []
    for key, value in zip(table.keys, table.values, strict=True):
        name = syntax.string_of(key)
        if name is None or key is None:
            continue
        strings = syntax.strings_of(value) or ()
        text = syntax.string_of(value)
        if text is not None:
            source, _, attribute = text.partition(":")
            strings = (source, attribute or name)
        if len(strings) == 2:
            found.append((name, LazyName(key.lineno, (strings[0],), strings[1])))
        else:
            found.append((name, LazyName(key.lineno)))
    return found

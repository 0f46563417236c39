"""What a text tells of the classes of its objects: annotations, and names given a new instance."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Literal

from kunlun_adapt.upstream import syntax

_WRAPPERS = frozenset({"Optional", "Annotated", "Final", "ClassVar"})


@dataclass(frozen=True, slots=True)
class Receiver:
    """The object of an attribute: `self` and `super` of a class, or an instance `made` of one.

    `text` is the class: its qualified name in the module for the first two, else as it is spelled.
    """

    how: Literal["self", "super", "made"]
    text: str


def hint_of(annotation: ast.expr | None) -> str | None:
    """The one class that an annotation names, or None."""
    if annotation is None:
        return None
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        try:
            return hint_of(ast.parse(annotation.value, mode="eval").body)
        except (SyntaxError, ValueError):
            return None
    if isinstance(annotation, ast.BinOp) and isinstance(annotation.op, ast.BitOr):
        sides = [annotation.left, annotation.right]
        sides = [s for s in sides if not (isinstance(s, ast.Constant) and s.value is None)]
        return hint_of(sides[0]) if len(sides) == 1 else None
    if isinstance(annotation, ast.Subscript):
        outer = (syntax.dotted(annotation.value) or "").rpartition(".")[2]
        return hint_of(annotation.slice) if outer in _WRAPPERS else None
    return syntax.dotted(annotation)


def made_of(value: ast.expr | None) -> str | None:
    """The class that an expression makes an instance of, by the look of the name, or None."""
    if not isinstance(value, ast.Call):
        return None
    text = syntax.dotted(value.func)
    leaf = (text or "").rpartition(".")[2].lstrip("_")
    return text if leaf[:1].isupper() else None


def local_hints(node: ast.FunctionDef | ast.AsyncFunctionDef) -> dict[str, str]:
    """The classes of a function's parameters and variables, where the text gives only one."""
    found: dict[str, str] = {}
    arguments = node.args
    for item in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]:
        hint = hint_of(item.annotation)
        if hint is not None:
            found[item.arg] = hint
    spoiled: set[str] = set()
    for child in ast.walk(node):
        name, hint = _given(child)
        if name is None or "." in name:
            continue
        if hint is None or found.get(name, hint) != hint:
            spoiled.add(name)
        else:
            found[name] = hint
    return {name: hint for name, hint in found.items() if name not in spoiled}


def class_hints(node: ast.ClassDef) -> dict[str, str]:
    """The classes of the attributes of a class's instances, where the text gives only one."""
    found: dict[str, str] = {}
    spoiled: set[str] = set()

    def note(name: str, hint: str | None) -> None:
        if hint is None or found.get(name, hint) != hint:
            spoiled.add(name)
        else:
            found[name] = hint

    for item in node.body:
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
            note(item.target.id, hint_of(item.annotation))
        if not isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef) or not item.args.args:
            continue
        receiver = item.args.args[0].arg
        hints = {a.arg: hint_of(a.annotation) for a in [*item.args.args, *item.args.kwonlyargs]}
        for child in ast.walk(item):
            name, hint = _given(child)
            if name is None or not name.startswith(f"{receiver}."):
                continue
            attribute = name.partition(".")[2]
            value = getattr(child, "value", None)
            if hint is None and isinstance(value, ast.Name):
                hint = hints.get(value.id)
            if "." not in attribute and not _is_none(value, child):
                note(attribute, hint)
    return {name: hint for name, hint in found.items() if name not in spoiled}


def _given(node: ast.AST) -> tuple[str | None, str | None]:
    """The name that a statement gives a value to, and the value's class."""
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        return syntax.dotted(node.targets[0]), made_of(node.value)
    if isinstance(node, ast.AnnAssign):
        return syntax.dotted(node.target), hint_of(node.annotation)
    return None, None


def _is_none(value: ast.expr | None, statement: ast.AST) -> bool:
    plain = isinstance(value, ast.Constant) and value.value is None
    return plain and isinstance(statement, ast.Assign)

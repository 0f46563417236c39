"""What upstream's platform class does by itself, and what the map says about its members."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from kunlun_adapt.check.context import Context
from kunlun_adapt.check.keys import misspelt_keys
from kunlun_adapt.plan import CAPABILITIES, spelled
from kunlun_adapt.upstream import Resolver, Symbol

PLANNED = "[Planned]"


def profiles_without(context: Context, name: str) -> tuple[str, ...]:
    """Return the profiles in which the map gives nothing for a member of upstream's platform.

    What is given under a misspelt key counts as given: another finding speaks of it.
    """
    for key in misspelt_keys(context).values():
        spelling = spelled(context.map, key, context.release, context.beyond_claims)
        names = {spelling.method, spelling.field} if spelling else {key.removeprefix("methods.")}
        if name in names:
            return ()
    return tuple(
        plan.profile for plan in context.plans if all(m.name != name for m in plan.members)
    )


def giving_key(context: Context, name: str) -> str | None:
    """Return the key under which some profile gives a member."""
    return next((m.key for m in context.members if m.name == name), None)


def stated_capabilities(context: Context) -> str | None:
    """Return what the map says that upstream's capabilities are in this release."""
    spelling = spelled(context.map, CAPABILITIES, context.release, context.beyond_claims)
    return spelling.call if spelling is not None else None


def capabilities_class(context: Context) -> str | None:
    """Return the class of the release's capabilities by what its platform class makes of it."""
    member = context.platform_members.get(CAPABILITIES)
    made = (member.value or "").partition("(")[0] if member is not None else ""
    if member is None or not made.isidentifier():
        return None
    found = context.facts.resolve(f"{member.module}.{made}")
    return found.path if isinstance(found, Symbol) and found.kind == "class" else None


def raising_members(context: Context) -> Iterator[tuple[str, Symbol]]:
    """Yield the public members that do nothing but raise NotImplementedError.

    Members that upstream marks as planned, and therefore does not call yet, are left out.
    """
    reader = context.reader
    if reader is None:
        return
    trees: dict[str, ast.Module | None] = {}
    for name, symbol in context.platform_members.items():
        if name.startswith("_"):
            continue
        file = symbol.location.file
        if file not in trees:
            trees[file] = _tree(reader, file)
        node = _definition(trees[file], name, symbol.location.line)
        if node is not None and _only_raises(node) and not _planned(node):
            yield name, symbol


def _tree(reader: Resolver, file: str) -> ast.Module | None:
    source = reader.release.read(file)
    if source is None:
        return None
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError):
        return None


def _definition(
    tree: ast.Module | None, name: str, line: int
) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    if tree is None:
        return None
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == name:
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            if first <= line <= node.lineno:
                return node
    return None


def _only_raises(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    body = node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body
    if len(body) != 1 or not isinstance(body[0], ast.Raise) or body[0].exc is None:
        return False
    raised = body[0].exc.func if isinstance(body[0].exc, ast.Call) else body[0].exc
    return isinstance(raised, ast.Name) and raised.id == "NotImplementedError"


def _planned(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return PLANNED in (ast.get_docstring(node) or "")

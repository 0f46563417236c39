"""The annotated fields of a class, whatever classes it is put together from."""

from __future__ import annotations

import ast

from kunlun_adapt.upstream import syntax
from kunlun_adapt.upstream.found import Found, own_scopes
from kunlun_adapt.upstream.inventory.items import Item, Table
from kunlun_adapt.upstream.module import ModuleTable
from kunlun_adapt.upstream.resolve import Resolver
from kunlun_adapt.upstream.symbols import Location

_WRAPPERS = frozenset({"A", "Annotated"})
_CONSTANT_SIZE = 4000
"""A list of choices is never longer than this many characters."""


def fields_of(resolver: Resolver, class_path: str) -> Table:
    """Each field's type, default and choices; empty where there is no such class."""
    owner = resolver.find(class_path)
    if not isinstance(owner, Found):
        return {}
    found: Table = {}
    for klass in resolver.lookup.mro(owner)[0]:
        for holder in (klass, *resolver.lookup.donors(klass)):
            if holder.table is None:
                continue
            for scope in own_scopes(holder):
                for name, bound in scope.bindings.items():
                    # An annotation alone is a field as well; a method is none.
                    binding = next((b for b in reversed(bound) if b.kind != "function"), None)
                    if name in found or binding is None or name.startswith("__"):
                        continue
                    node = holder.table.node(binding)
                    if isinstance(node, ast.AnnAssign):
                        at = Location(holder.table.file, binding.line)
                        found[name] = _field(resolver, holder.table, node, at)
    return found


def _field(resolver: Resolver, table: ModuleTable, node: ast.AnnAssign, at: Location) -> Item:
    annotation = _parsed(node.annotation)
    extras: list[ast.expr] = []
    if isinstance(annotation, ast.Subscript) and syntax.last_name(annotation.value) in _WRAPPERS:
        inside = annotation.slice
        items = inside.elts if isinstance(inside, ast.Tuple) else [inside]
        annotation, extras = _parsed(items[0]), list(items[1:])
    choices = None
    for extra in extras:
        if not isinstance(extra, ast.Call):
            continue
        for keyword in extra.keywords:
            if keyword.arg == "choices":
                choices = _choices(resolver, table, keyword.value)
    default = None if node.value is None else _default(node.value)
    return Item(ast.unparse(annotation), default, choices, at)


def _default(value: ast.expr) -> str:
    """The default as one would say it: the factory's result, where a call only wraps it."""
    if isinstance(value, ast.Call) and syntax.last_name(value.func) == "field":
        for keyword in value.keywords:
            if keyword.arg in ("default", "default_factory"):
                return ast.unparse(keyword.value)
    return ast.unparse(value)


def _choices(resolver: Resolver, table: ModuleTable, given: ast.expr) -> tuple[str, ...] | None:
    """The values of a list, in place or behind a name; None where nobody can tell."""
    for _ in range(3):
        if isinstance(given, ast.List | ast.Tuple | ast.Set):
            values = [item.value for item in given.elts if isinstance(item, ast.Constant)]
            return tuple(map(str, values)) if len(values) == len(given.elts) else None
        if isinstance(given, ast.Call) and len(given.args) == 1:
            given = given.args[0]  # list(X), set(X), sorted(X)
        if not isinstance(given, ast.Name | ast.Attribute):
            return None
        found = resolver.lookup.dotted_name(table, (), syntax.dotted(given) or "")
        if not isinstance(found, Found) or found.table is None or found.binding is None:
            return None
        text = found.table.text(found.binding)
        if len(text) > _CONSTANT_SIZE:
            return None
        node = syntax.parse_span(text)
        if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
            return None
        table, given = found.table, node.value
    return None


def _parsed(node: ast.expr) -> ast.expr:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        try:
            return ast.parse(node.value, mode="eval").body
        except SyntaxError:
            return node
    return node

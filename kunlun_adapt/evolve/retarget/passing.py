"""Whether anybody in a release passes a parameter: what nobody passes may be ignored unseen."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kunlun_adapt.upstream import Location, Symbol
from kunlun_adapt.upstream.release import Release, module_of
from kunlun_adapt.upstream.syntax import parse_module

_GENERIC = re.compile(r"(forward\w*|__\w+__|apply|run|execute)\Z")
"""Names under which something is called that the call does not name."""
_POSITIONAL = ("positional_only", "positional")
_RECEIVERS = ("method", "classmethod")
MOST = 400
"""A parameter whose name stands in more files than these is taken to be passed."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A parameter of a callable: `leaf` is the name by which calls name it, None for any call."""

    parameter: str
    leaf: str | None
    position: int | None

    @classmethod
    def of(cls, symbol: Symbol, parameter: str, leaf: str) -> Asked:
        """Ask for a parameter of a symbol that is called by `leaf`."""
        signature = symbol.signature
        plain = [p.name for p in signature.parameters if p.kind in _POSITIONAL] if signature else []
        if symbol.kind in _RECEIVERS:
            plain = plain[1:]
        if _GENERIC.match(leaf):
            return cls(parameter, None, None)
        return cls(parameter, leaf, plain.index(parameter) if parameter in plain else None)


def passed(release: Release, asked: Iterable[Asked]) -> dict[Asked, list[Location]]:
    """Return for each of the parameters where a call outside of tests passes it, or may."""
    found: dict[Asked, list[Location]] = {item: [] for item in asked}
    if not found:
        return found
    names = "|".join(re.escape(a.parameter) for a in found)
    leaves = "|".join(re.escape(a.leaf) for a in found if a.leaf)
    keyword = re.compile(rf"\b({names})\s*=[^=]".encode())
    # Called, handed on, or given another name: `f(`, `[f, `, `import f as g`, `g = f`.
    used = rf"\b({leaves})\s*(?:[\[(,)]|(?:as|if|else|or)\b|#|$)"
    called = re.compile(used.encode(), re.MULTILINE) if leaves else None
    counts: dict[str, int] = {}
    for file in release.files():
        if module_of(file) is None or "/test/" in file:
            continue
        source = release.read(file) or b""
        words = {match[1].decode() for match in keyword.finditer(source)}
        heard = {m[1].decode() for m in called.finditer(source)} if called else set()
        for word in words:
            counts[word] = counts.get(word, 0) + 1
        here = [a for a in found if a.leaf in heard or (a.leaf is None and a.parameter in words)]
        here = [a for a in here if counts.get(a.parameter, 0) <= MOST]
        if not here:
            continue
        try:
            tree = parse_module(source, file)
        except (SyntaxError, ValueError):
            continue
        for item, line in _in_tree(tree, here):
            found[item].append(Location(file, line))
    for item, places in found.items():
        if not places and counts.get(item.parameter, 0) > MOST and item.leaf is None:
            places.append(Location("", 0))
    return found


def _in_tree(tree: ast.AST, asked: list[Asked]) -> Iterator[tuple[Asked, int]]:
    names = _names(tree, {item.leaf for item in asked if item.leaf})
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call):
            continue
        callees, keywords = names.get(_leaf(call.func), set()), {k.arg for k in call.keywords}
        handed = set[str]().union(*(names.get(_leaf(item), ()) for item in call.args))
        starred = None in keywords or any(isinstance(a, ast.Starred) for a in call.args)
        for item in asked:
            named = item.leaf is None or item.leaf in callees | handed
            if named and item.parameter in keywords:
                yield item, call.lineno
            elif item.leaf in callees:
                by_place = item.position is not None and len(call.args) > item.position
                if starred or by_place:
                    yield item, call.lineno


def _names(tree: ast.AST, leaves: Iterable[str]) -> dict[str | None, set[str]]:
    """Return what names mean one of the callables in a module: their own, and others given there.

    Which scope gives a name is not looked at: in doubt it means the callable.
    """
    names: dict[str | None, set[str]] = {leaf: {leaf} for leaf in leaves}
    for node in ast.walk(tree):
        given: list[tuple[str | None, list[str | None]]] = []
        if isinstance(node, ast.ImportFrom):
            given = [(item.asname, [item.name]) for item in node.names]
        elif isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr) and node.value:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            given = [(_leaf(target), [_leaf(v) for v in _values(node.value)]) for target in targets]
        for name, meant in given:
            for other in meant:
                if name is not None and other in names:
                    names.setdefault(name, set()).update(names[other])
    return names


def _values(node: ast.expr) -> list[ast.expr]:
    """Return what an expression may be, where it chooses or wraps."""
    if isinstance(node, ast.IfExp):
        return [*_values(node.body), *_values(node.orelse)]
    if isinstance(node, ast.Call):
        return node.args
    return node.values if isinstance(node, ast.BoolOp) else [node]


def _leaf(node: ast.expr) -> str | None:
    """Return the last name of what is called; of a launch that of the kernel."""
    if isinstance(node, ast.Subscript):
        return _leaf(node.value)
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else None

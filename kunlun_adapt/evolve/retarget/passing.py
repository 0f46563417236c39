"""Whether anybody in a release passes a parameter: what nobody passes may be ignored unseen."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256

from kunlun_adapt.upstream import Location, Symbol
from kunlun_adapt.upstream.release import Release, module_of
from kunlun_adapt.upstream.syntax import parse_module

_GENERIC = re.compile(r"(forward\w*|__\w+__|apply|run|execute)\Z")
"""Names under which something is called that the call does not name."""
_POSITIONAL = ("positional_only", "positional")
_RECEIVERS = ("method", "classmethod")
_TELLING = (ast.Call, ast.ImportFrom, ast.Assign, ast.AnnAssign, ast.NamedExpr)
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


class Calls:
    """What the calls of some releases pass; a file that several of them have is read once."""

    def __init__(self, asked: Iterable[Asked]) -> None:
        self._asked = list(dict.fromkeys(asked))
        names = "|".join(re.escape(a.parameter) for a in self._asked)
        leaves = "|".join(re.escape(a.leaf) for a in self._asked if a.leaf)
        self._keyword = re.compile(rf"\b({names})\s*=[^=]".encode())
        # Called, handed on, or given another name: `f(`, `[f, `, `import f as g`, `g = f`.
        used = rf"\b({leaves})\s*(?:[\[(,)]|(?:as|if|else|or)\b|#|$)"
        self._called = re.compile(used.encode(), re.MULTILINE) if leaves else None
        self._words: dict[bytes, tuple[set[str], set[str]]] = {}
        self._found: dict[tuple[bytes, tuple[Asked, ...]], tuple[tuple[Asked, int], ...]] = {}

    def passed(self, release: Release) -> dict[Asked, list[Location]]:
        """Return for each parameter where a call outside of tests passes it, or may."""
        found: dict[Asked, list[Location]] = {item: [] for item in self._asked}
        counts: dict[str, int] = {}
        for file in release.files() if found else ():
            if module_of(file) is None or "/test/" in file:
                continue
            source = release.read(file) or b""
            key = sha256(source).digest()
            if key not in self._words:
                self._words[key] = self._heard(source)
            words, heard = self._words[key]
            for word in words:
                counts[word] = counts.get(word, 0) + 1
            here = [
                a for a in found if a.leaf in heard or (a.leaf is None and a.parameter in words)
            ]
            wanted = tuple(a for a in here if counts.get(a.parameter, 0) <= MOST)
            if not wanted:
                continue
            if (key, wanted) not in self._found:
                self._found[key, wanted] = _in_source(source, file, wanted)
            for item, line in self._found[key, wanted]:
                found[item].append(Location(file, line))
        for item, places in found.items():
            if not places and counts.get(item.parameter, 0) > MOST and item.leaf is None:
                places.append(Location("", 0))
        return found

    def _heard(self, source: bytes) -> tuple[set[str], set[str]]:
        """The parameters that a text names as keywords, and the callables that it names."""
        heard = self._called.finditer(source) if self._called else ()
        words = {match[1].decode() for match in self._keyword.finditer(source)}
        return words, {match[1].decode() for match in heard}


def _in_source(source: bytes, file: str, asked: tuple[Asked, ...]) -> tuple[tuple[Asked, int], ...]:
    try:
        return tuple(_in_tree(parse_module(source, file), asked))
    except (SyntaxError, ValueError):
        return ()


def _in_tree(tree: ast.AST, asked: Iterable[Asked]) -> Iterator[tuple[Asked, int]]:
    nodes = [n for n in ast.walk(tree) if isinstance(n, _TELLING)]
    names = _names(nodes, {item.leaf for item in asked if item.leaf})
    for call in nodes:
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


def _names(nodes: Iterable[ast.AST], leaves: Iterable[str]) -> dict[str | None, set[str]]:
    """Return what names mean one of the callables in a module: their own, and others given there.

    Which scope gives a name is not looked at: in doubt it means the callable.
    """
    names: dict[str | None, set[str]] = {leaf: {leaf} for leaf in leaves}
    for node in nodes:
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

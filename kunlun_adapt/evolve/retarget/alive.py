"""Whether anything in a release still uses a symbol: what only tests and dead code name is dead.

It is followed from user to user up to something that runs: a statement of a module, a decorated
function, a method that another module calls by its name. Where the text leaves it open whether
somebody uses a symbol, somebody does.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kunlun_adapt.check.use_sites import is_test
from kunlun_adapt.upstream import Symbol, syntax
from kunlun_adapt.upstream.following import FollowingResolver
from kunlun_adapt.upstream.release import module_of

STEPS = 8
"""So far users of users are followed."""
MANY = 4
"""What so many modules import has users."""
_PLAIN = ("jit", "no_grad", "inference_mode", "staticmethod", "classmethod", "dataclass")
"""Decorators that hand nothing to anybody."""
_BARE = ("object", "ABC", "Generic", "Protocol", "NamedTuple")

Scope = tuple[str, str]
"""A module, and the function, method or class in it; empty for the module's own statements."""


@dataclass(frozen=True, slots=True)
class _Module:
    """What the scopes of a module mention, and what a decorator may have handed on."""

    mentions: dict[str, tuple[str, ...]]
    decorated: frozenset[str]
    bases: dict[str, tuple[str, ...]]


class Alive:
    """Which symbols of one release something runs."""

    def __init__(self, reader: FollowingResolver) -> None:
        self._reader = reader
        self._modules: dict[str, _Module | None] = {}
        self._alive: set[Scope] = set()

    def dead(self, symbols: Iterable[Symbol]) -> dict[str, tuple[Scope, ...]]:
        """Return of some symbols those that nothing runs, by path, each with its dead users."""
        found: dict[str, set[Scope]] = {}
        for symbol in symbols:
            seen: set[Scope] = set()
            if not self._runs((symbol.module, symbol.qualname), seen, STEPS):
                found[symbol.path] = seen
        for seen in found.values():
            seen -= self._alive
            # Who calls a method by its name does not call that of a dead class.
            seen -= {(m, q) for m, q in seen if (m, q.rpartition(".")[0]) in seen}
        heard = self._heard({scope for seen in found.values() for scope in seen})
        return {
            path: tuple(sorted(seen))
            for path, seen in found.items()
            if not any(heard[scope] - {module for module, _ in seen} for scope in seen)
        }

    def users(self, symbol: Symbol) -> list[str]:
        """Return the scopes that name a symbol, outside of tests."""
        scope = (symbol.module, symbol.qualname)
        return sorted({".".join(filter(None, user)) for user in self._users(scope)})

    def _runs(self, scope: Scope, seen: set[Scope], steps: int) -> bool:
        if scope in self._alive or not scope[1] or steps == 0:
            return True
        if scope in seen:
            return False
        seen.add(scope)
        runs = self._has_users(scope, seen, steps)
        if runs:
            self._alive.add(scope)
        return runs

    def _has_users(self, scope: Scope, seen: set[Scope], steps: int) -> bool:
        module, name = scope
        text = self._module(module)
        if text is None or name in text.decorated:
            return True
        owner, _, leaf = name.rpartition(".")
        if owner:
            if not self._runs((module, owner), seen, steps - 1):
                return False
            if leaf[:2] == "__" or self._is_called_from_outside(module, owner):
                return True
            if any(m != module and not is_test(m) for m in self._reader.index.calling(leaf)):
                return True
        elif len({place for place, _ in self._importers(scope)}) >= MANY:
            return True
        return any(self._runs(user, seen, steps - 1) for user in self._users(scope))

    def _users(self, scope: Scope) -> Iterator[Scope]:
        """Yield who names a symbol: of a member who names it in its own module."""
        module, name = scope
        named = {(module, name.rpartition(".")[2])}
        if "." not in name:
            named |= self._importers(scope)
        for place, word in sorted(named):
            text = self._module(place)
            for user in text.mentions.get(word, ()) if text is not None else ():
                inside = place == module and (user == name or user.startswith(f"{name}."))
                if not inside:
                    yield place, user

    def _importers(self, scope: Scope) -> set[tuple[str, str]]:
        """Return the modules that can name a symbol, with the name by which they would."""
        module, name = scope
        index = self._reader.index
        found = {
            (item.module, item.name)
            for item in index.importers(f"{module}.{name}")
            if not item.type_checking
        }
        for place, word in {(module, name), *found}:
            for item in index.importers(place):
                if not item.type_checking:
                    # `import sglang.a.b` binds `sglang`, and is named in more than two parts.
                    whole = item.name == place.partition(".")[0]
                    found.add((item.module, word if whole else f"{item.name}.{word}"))
        return {(m, word) for m, word in found if m != module and not is_test(m)}

    def _is_called_from_outside(self, module: str, owner: str) -> bool:
        """Tell whether a class has a base that is not upstream's, which may call its methods."""
        text = self._module(module)
        for base in text.bases.get(owner, ()) if text is not None else ():
            if base.rpartition(".")[2] in _BARE:
                continue
            found = self._reader.resolve(f"{module}.{base}")
            if not isinstance(found, Symbol) or found.kind != "class":
                return True
            if self._is_called_from_outside(found.module, found.qualname):
                return True
        return False

    def _module(self, module: str) -> _Module | None:
        if module not in self._modules:
            file = self._reader.index.file(module)
            source = self._reader.release.read(file) if file else None
            try:
                tree = syntax.parse_module(source or b"", module) if source is not None else None
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                tree = None
            self._modules[module] = None if tree is None else _read(tree)
        return self._modules[module]

    def _heard(self, scopes: set[Scope]) -> dict[Scope, set[str]]:
        """Return where the text names scopes in a way that is not followed: by an attribute or a
        string."""
        found: dict[Scope, set[str]] = {scope: set() for scope in scopes}
        if not found:
            return found
        leaves = {scope: scope[1].rpartition(".")[2] for scope in scopes}
        words = "|".join(sorted(map(re.escape, set(leaves.values()))))
        attribute = re.compile(rf"\.\s*({words})\b".encode())
        quoted = re.compile(rf"[\"'](?:[\w.:]*[.:])?({words})[\"']".encode())
        for file in self._reader.release.files():
            module = module_of(file)
            if module is None or is_test(module):
                continue
            source = self._reader.release.read(file) or b""
            strings = {m[1].decode() for m in quoted.finditer(source)}
            members = {m[1].decode() for m in attribute.finditer(source)} | strings
            for scope, leaf in leaves.items():
                # A package lists in strings what it gives on.
                plain = strings if not file.endswith("/__init__.py") else set()
                if leaf[:2] != "__" and leaf in (members if "." in scope[1] else plain):
                    found[scope].add(module)
        return found


def _read(tree: ast.Module) -> _Module:
    mentions: dict[str, dict[str, None]] = {}
    decorated: set[str] = set()
    bases: dict[str, tuple[str, ...]] = {}

    def note(node: ast.AST, scope: str) -> None:
        if isinstance(node, ast.Import | ast.ImportFrom):
            return
        if isinstance(node, ast.Assign) and syntax.dotted(node.targets[0]) == "__all__":
            return
        word = None
        if isinstance(node, ast.Name):
            word = node.id
        elif isinstance(node, ast.Attribute):
            word = node.attr
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            word = re.split(r"[.:]", node.value)[-1] if len(node.value) < 200 else None
        if word:
            mentions.setdefault(word, {})[scope] = None
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            mentions.setdefault(f"{node.value.id}.{node.attr}", {})[scope] = None
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns"):
                continue
            for item in value if isinstance(value, list) else [value]:
                if isinstance(item, ast.AST):
                    visit(item, scope)

    def visit(node: ast.AST, scope: str) -> None:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            define(node, scope)
        else:
            note(node, scope)

    def define(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, scope: str) -> None:
        # Which function it is does not matter inside of one.
        inner = scope if scope in functions else f"{scope}.{node.name}".lstrip(".")
        outside = scope if scope in functions else ""
        for mark in node.decorator_list:
            visit(mark, outside)
            called = syntax.dotted(mark.func if isinstance(mark, ast.Call) else mark) or ""
            if called.rpartition(".")[2] not in _PLAIN:
                decorated.add(inner)
        if isinstance(node, ast.ClassDef):
            bases[inner] = tuple(syntax.dotted(base) or "?" for base in node.bases)
            inside = [*node.bases, *node.keywords, *node.body]
            for part in inside:
                visit(part, inner)
            return
        functions.add(inner)
        for default in [*node.args.defaults, *filter(None, node.args.kw_defaults)]:
            visit(default, outside)
        for statement in node.body:
            visit(statement, inner)

    functions: set[str] = set()
    for statement in tree.body:
        visit(statement, "")
    return _Module({w: tuple(s) for w, s in mentions.items()}, frozenset(decorated), bases)

"""One pass over a module's tree: body hashes, imports inside functions, names of called methods."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass

from kunlun_adapt.upstream import syntax
from kunlun_adapt.upstream.body_text import BodyText


@dataclass(frozen=True, slots=True)
class LocalImport:
    """An import that runs when the function around it is called; `attribute` as in `Binding`."""

    scope: str
    name: str
    source: str
    attribute: str | None
    line: int
    guard: str | None
    hidden: bool


class ModuleWalk(BodyText):
    """Spells a module and notes on the way what the index wants to know of it."""

    def __init__(self, absolute: Callable[[ast.ImportFrom], str]) -> None:
        super().__init__()
        self.prints: dict[syntax.Span, str] = {}
        self.nodes: dict[syntax.Span, syntax.DefinitionNode] = {}
        self.imports: list[LocalImport] = []
        self.called: set[str] = set()
        #: What `import a.b` loads on import, which binds `a` alone, each with its guard.
        self.loads: list[tuple[str, str | None]] = []
        self._absolute = absolute
        self._names: list[str] = []
        self._functions = 0
        self._guards: list[tuple[ast.expr, bool]] = []
        self._makers |= {
            ast.Import: self._import,
            ast.ImportFrom: self._import,
            ast.If: self._if,
            ast.AnnAssign: self._annotated,
        }

    def forget(self) -> None:
        """Let go of the tree: the collector, which would find the circle, may be switched off."""
        self.nodes.clear()
        self._makers.clear()

    def call(self, node: ast.Call) -> str:
        if isinstance(node.func, ast.Attribute):
            self.called.add(node.func.attr)
        return super().call(node)

    def definition(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> str:
        is_function = not isinstance(node, ast.ClassDef)
        guards = self._guards
        self._names.append(node.name)
        self._functions += is_function
        if is_function:
            self._guards = []
        body = self.body(node)
        self._guards = guards
        self._functions -= is_function
        self._names.pop()
        if not self._functions:
            span = syntax.Span.of(node)
            self.nodes[span] = node
            self.prints[span] = syntax.hashed(type(node).__name__ + body)
        return self.plain(node, body)

    def assign(self, node: ast.Assign) -> str:
        if self._functions:
            return super().assign(node)
        value = self.text(node.value)
        self.prints[syntax.Span.of(node)] = syntax.hashed(f"value{value}")
        return f"(Assign targets={self.items(node.targets)} value={value})"

    def _annotated(self, node: ast.AnnAssign) -> str:
        if not self._functions:
            value = "None" if node.value is None else self.text(node.value)
            self.prints[syntax.Span.of(node)] = syntax.hashed(f"value{value}")
        return self.plain(node)

    def _if(self, node: ast.If) -> str:
        # Spelled like any other node, with the condition known to what stands below it.
        test = self.text(node.test)
        self._guards.append((node.test, True))
        body = f" body={self.items(node.body)}" if node.body else ""
        self._guards[-1] = (node.test, False)
        orelse = f" orelse={self.items(node.orelse)}" if node.orelse else ""
        self._guards.pop()
        return f"(If test={test}{body}{orelse})"

    def _import(self, node: ast.Import | ast.ImportFrom) -> str:
        if self._functions:
            self._note(node)
        elif isinstance(node, ast.Import):
            guard, hidden = self._guard()
            if not hidden:
                self.loads += [(item.name, guard) for item in node.names if not item.asname]
        return self.plain(node)

    def _note(self, node: ast.Import | ast.ImportFrom) -> None:
        scope = ".".join(self._names)
        guard, hidden = self._guard()
        source = self._absolute(node) if isinstance(node, ast.ImportFrom) else ""
        for item in node.names:
            if isinstance(node, ast.ImportFrom):
                name, origin, attribute = item.asname or item.name, source, item.name
            else:
                name = item.asname or item.name.partition(".")[0]
                origin, attribute = item.name if item.asname else name, None
            if name != "*":
                found = LocalImport(scope, name, origin, attribute, item.lineno, guard, hidden)
                self.imports.append(found)

    def _guard(self) -> tuple[str | None, bool]:
        hidden = any(holds and syntax.is_type_checking(test) for test, holds in self._guards)
        return syntax.guard_of(self._guards), hidden

"""The table of one module: what binds which name, where, and under which guard."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from kunlun_adapt.upstream import syntax
from kunlun_adapt.upstream.lazy import LazyNames, read_module_getattr

BindingKind = Literal["function", "class", "import", "assignment", "annotation", "served"]


@dataclass(frozen=True, slots=True)
class Binding:
    """One statement that binds a name in a module or class body.

    `span` is the text of the statement, decorators included; `served` names have none, since a
    module's `__getattr__` makes them.
    An import has `source` (absolute module) and `attribute` (None for `import module`);
    an assignment has `alias` where its value is a dotted name and `call` where it is a call
    (with the strings and names among the arguments); `placeholder` is `name = None`, and
    `conditional` is `name = one if condition else other`, where both have dotted names.
    `scope` is the body of a class.
    """

    name: str
    kind: BindingKind
    line: int
    span: syntax.Span
    guard: str | None = None
    type_checking: bool = False
    source: str = ""
    attribute: str | None = None
    alias: str | None = None
    call: str | None = None
    call_strings: tuple[str, ...] = ()
    call_names: tuple[str, ...] = ()
    placeholder: bool = False
    annotated: bool = False
    conditional: bool = False
    overload: bool = False
    decorators: tuple[str, ...] = ()
    bases: tuple[str, ...] = ()
    scope: Scope | None = None


@dataclass(frozen=True, slots=True)
class Wildcard:
    """One `from source import *`."""

    source: str
    line: int
    guard: str | None = None


@dataclass(slots=True)
class Scope:
    """The names that a module or class body binds, each with all its bindings in order."""

    bindings: dict[str, list[Binding]] = field(default_factory=dict)
    wildcards: list[Wildcard] = field(default_factory=list)

    def add(self, binding: Binding) -> None:
        self.bindings.setdefault(binding.name, []).append(binding)


@dataclass(slots=True)
class ModuleTable:
    """What one module binds; `exported` is its `__all__`, None where there is none or no list.

    `attached` holds the attributes that the module gives to classes after their bodies
    (`Cls.attr = …`), by class name. `lazy` is what its `__getattr__` serves. `source` may be given
    as a function that reads it: most tables are never asked for a text.
    """

    name: str
    file: str
    is_package: bool
    source: str | Callable[[], str]
    scope: Scope
    exported: tuple[str, ...] | None = None
    attached: dict[str, Scope] = field(default_factory=dict)
    lazy: LazyNames | None = None

    def text(self, binding: Binding) -> str:
        """The source lines of a binding's statement."""
        if not isinstance(self.source, str):
            self.source = self.source()
        return binding.span.cut(self.source)

    def node(self, binding: Binding) -> ast.stmt:
        """The syntax tree of a binding's statement, made again from its lines."""
        return syntax.parse_span(self.text(binding))


def read_module(name: str, file: str, source: bytes) -> ModuleTable:
    """Build the table of a module from its bytes.

    Raises SyntaxError (or ValueError for null bytes) where Python could not read it.
    """
    return read_tree(name, file, syntax.parse_module(source, file), decoded(source))


def decoded(source: bytes) -> str:
    """The text of a file's bytes as the parser sees it."""
    text = source.decode(_encoding(source), "replace").removeprefix("\ufeff")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def read_tree(name: str, file: str, tree: ast.Module, text: str) -> ModuleTable:
    """Build the table of a module from its syntax tree; `text` is what spans are cut from."""
    is_package = file.rpartition("/")[2] == "__init__.py"
    reader = _Reader(name, is_package)
    scope = Scope()
    reader.read(tree.body, scope, None)
    return ModuleTable(
        name=name,
        file=file,
        is_package=is_package,
        source=text,
        scope=scope,
        exported=_exported(reader.all_parts),
        attached=reader.attached,
        lazy=read_module_getattr(tree, reader.absolute),
    )


def _encoding(source: bytes) -> str:
    return tokenize.detect_encoding(io.BytesIO(source).readline)[0]


def _exported(parts: list[tuple[str, ...] | None]) -> tuple[str, ...] | None:
    if not parts or None in parts:
        return None
    return tuple(name for part in parts if part is not None for name in part)


def absolute_in(module: str, is_package: bool) -> Callable[[ast.ImportFrom], str]:
    """Tell, inside a module, the absolute module of a `from … import`.

    It is empty where the import leaves the top package.
    """
    package = module if is_package else module.rpartition(".")[0]

    def absolute(node: ast.ImportFrom) -> str:
        if node.level == 0:
            return node.module or ""
        parts = package.split(".")
        keep = len(parts) - (node.level - 1)
        if keep <= 0:
            return ""
        return ".".join(parts[:keep] + ([node.module] if node.module else []))

    return absolute


class _Reader:
    """Walks the statements that run on import; bodies of functions are left alone."""

    def __init__(self, module: str, is_package: bool) -> None:
        self.absolute = absolute_in(module, is_package)
        self.all_parts: list[tuple[str, ...] | None] = []
        self.attached: dict[str, Scope] = {}

    def read(
        self,
        body: list[ast.stmt],
        scope: Scope,
        guard: str | None,
        type_checking: bool = False,
        in_class: bool = False,
    ) -> None:
        for node in body:
            self._statement(node, scope, guard, type_checking, in_class)

    def _statement(
        self,
        node: ast.stmt,
        scope: Scope,
        guard: str | None,
        hidden: bool,
        in_class: bool,
    ) -> None:
        if isinstance(node, syntax.DefinitionNode):
            scope.add(self._definition(node, guard, hidden))
        elif isinstance(node, ast.Import | ast.ImportFrom):
            self._import(node, scope, guard, hidden)
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                self._assign(target, node, node.value, scope, guard, hidden, in_class)
        elif isinstance(node, ast.AnnAssign):
            self._assign(node.target, node, node.value, scope, guard, hidden, in_class)
        elif isinstance(node, ast.AugAssign):
            if isinstance(node.target, ast.Name) and node.target.id == "__all__":
                self.all_parts.append(syntax.strings_of(node.value))
        elif isinstance(node, ast.Expr):
            self._all_call(node.value, in_class)
        elif isinstance(node, ast.Delete):
            if guard is None:
                for target in node.targets:
                    if isinstance(target, ast.Name):
                        scope.bindings.pop(target.id, None)
        elif isinstance(node, ast.If):
            self._if(node, scope, guard, hidden, in_class)
        else:
            for inner, condition in _blocks(node):
                self.read(inner, scope, syntax.joined(guard, condition), hidden, in_class)

    def _if(
        self, node: ast.If, scope: Scope, guard: str | None, hidden: bool, in_class: bool
    ) -> None:
        test = node.test
        if syntax.is_main(test):
            self.read(node.orelse, scope, guard, hidden, in_class)
        elif syntax.is_type_checking(test):
            self.read(node.body, scope, guard, True, in_class)
            self.read(node.orelse, scope, guard, hidden, in_class)
        elif isinstance(test, ast.UnaryOp) and syntax.is_type_checking(test.operand):
            self.read(node.body, scope, guard, hidden, in_class)
            self.read(node.orelse, scope, guard, True, in_class)
        else:
            text = syntax.condition_text(test)
            self.read(node.body, scope, syntax.joined(guard, text), hidden, in_class)
            if node.orelse:
                text = syntax.negated(test)
                self.read(node.orelse, scope, syntax.joined(guard, text), hidden, in_class)

    def _definition(self, node: syntax.DefinitionNode, guard: str | None, hidden: bool) -> Binding:
        names = tuple(syntax.decorator_name(item) for item in node.decorator_list)
        span = syntax.Span.of(node)
        if not isinstance(node, ast.ClassDef):
            return Binding(
                node.name,
                "function",
                node.lineno,
                span,
                guard,
                hidden,
                decorators=names,
                overload=any(name.rpartition(".")[2] == "overload" for name in names),
            )
        inner = Scope()
        self.read(node.body, inner, None, False, in_class=True)
        bases = tuple(syntax.base_name(base) or ast.unparse(base) for base in node.bases)
        return Binding(
            node.name,
            "class",
            node.lineno,
            span,
            guard,
            hidden,
            decorators=names,
            bases=bases,
            scope=inner,
        )

    def _import(
        self, node: ast.Import | ast.ImportFrom, scope: Scope, guard: str | None, hidden: bool
    ) -> None:
        span = syntax.Span.of(node)
        if isinstance(node, ast.Import):
            for item in node.names:
                # `import a.b` binds `a`, `import a.b as c` binds `c` to a.b.
                name = item.asname or item.name.partition(".")[0]
                source = item.name if item.asname else name
                scope.add(Binding(name, "import", item.lineno, span, guard, hidden, source))
            return
        source = self.absolute(node)
        for item in node.names:
            if item.name == "*":
                if not hidden:
                    scope.wildcards.append(Wildcard(source, node.lineno, guard))
                continue
            scope.add(
                Binding(
                    item.asname or item.name,
                    "import",
                    item.lineno,
                    span,
                    guard,
                    hidden,
                    source,
                    item.name,
                )
            )

    def _assign(
        self,
        target: ast.expr,
        node: ast.Assign | ast.AnnAssign,
        value: ast.expr | None,
        scope: Scope,
        guard: str | None,
        hidden: bool,
        in_class: bool,
    ) -> None:
        if isinstance(target, ast.Tuple | ast.List):
            values: list[ast.expr | None] = [None] * len(target.elts)
            if isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(values):
                values = list(value.elts)
            for item, part in zip(target.elts, values, strict=True):
                self._assign(item, node, part, scope, guard, hidden, in_class)
            return
        if isinstance(target, ast.Attribute):
            owner = syntax.dotted(target.value)
            if owner is not None and not in_class:
                binding = _assignment(target.attr, node, value, guard, hidden)
                self.attached.setdefault(owner, Scope()).add(binding)
            return
        if not isinstance(target, ast.Name):
            return
        if target.id == "__all__" and not in_class:
            self.all_parts = [_all_value(value)]
        scope.add(_assignment(target.id, node, value, guard, hidden))

    def _all_call(self, value: ast.expr, in_class: bool) -> None:
        if in_class or not isinstance(value, ast.Call) or len(value.args) != 1:
            return
        called = syntax.dotted(value.func)
        if called == "__all__.append":
            name = syntax.string_of(value.args[0])
            self.all_parts.append(None if name is None else (name,))
        elif called == "__all__.extend":
            self.all_parts.append(syntax.strings_of(value.args[0]))


def _assignment(
    name: str,
    node: ast.Assign | ast.AnnAssign,
    value: ast.expr | None,
    guard: str | None,
    hidden: bool,
) -> Binding:
    annotated = isinstance(node, ast.AnnAssign)
    call = value if isinstance(value, ast.Call) else None
    strings = [syntax.string_of(item) for item in call.args] if call else []
    names = [syntax.dotted(item) for item in call.args] if call else []
    return Binding(
        name,
        "annotation" if annotated and value is None else "assignment",
        node.lineno,
        syntax.Span.of(node),
        guard,
        hidden,
        alias=None if value is None else syntax.dotted(value),
        call=None if call is None else syntax.decorator_name(call),
        call_strings=tuple(text for text in strings if text is not None),
        call_names=tuple(text for text in names if text is not None),
        placeholder=isinstance(value, ast.Constant) and value.value is None,
        annotated=annotated,
        conditional=value is not None and bool(syntax.branches(value)),
    )


def _all_value(value: ast.expr | None) -> tuple[str, ...] | None:
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add):
        left, right = _all_value(value.left), _all_value(value.right)
        return None if left is None or right is None else left + right
    return syntax.strings_of(value)


def _blocks(node: ast.stmt) -> list[tuple[list[ast.stmt], str | None]]:
    """The statement lists inside a compound statement, each with its guard."""
    if isinstance(node, ast.Try) or type(node).__name__ == "TryStar":
        handlers: list[ast.ExceptHandler] = getattr(node, "handlers", [])
        body: list[ast.stmt] = getattr(node, "body", [])
        orelse: list[ast.stmt] = getattr(node, "orelse", [])
        final: list[ast.stmt] = getattr(node, "finalbody", [])
        found: list[tuple[list[ast.stmt], str | None]] = [
            (body + orelse, "try" if handlers else None)
        ]
        for handler in handlers:
            caught = "" if handler.type is None else " " + ast.unparse(handler.type)
            found.append((handler.body, f"except{caught}"))
        return [*found, (final, None)]
    if isinstance(node, ast.With | ast.AsyncWith):
        return [(node.body, None)]
    if isinstance(node, ast.For | ast.AsyncFor):
        text = f"for {ast.unparse(node.target)} in {ast.unparse(node.iter)}"
        return [(node.body, text), (node.orelse, None)]
    if isinstance(node, ast.While):
        return [(node.body, syntax.condition_text(node.test)), (node.orelse, None)]
    if isinstance(node, ast.Match):
        subject = ast.unparse(node.subject)
        return [
            (case.body, f"match {subject} case {ast.unparse(case.pattern)}") for case in node.cases
        ]
    return []

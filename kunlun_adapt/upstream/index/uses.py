"""The uses of some names in one module's text: where, in what role, and with which arguments.

Only names of interest are kept. Whether a use means a certain object is for the index to say;
what the text alone tells is noted here: names that a function binds itself, imports inside
functions, and what class a receiver is an instance of.
"""

from __future__ import annotations

import ast
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from kunlun_adapt.upstream import syntax
from kunlun_adapt.upstream.index.receivers import Receiver, class_hints, local_hints
from kunlun_adapt.upstream.index.records import CallForm, ReferenceKind

_PARTIALS = frozenset({"partial", "partialmethod"})
_CONTAINERS = (ast.List, ast.Tuple, ast.Set)


@dataclass(frozen=True, slots=True)
class Use:
    """One use: `text` is the dotted name, empty where it hangs on another expression.

    `imported` are the paths that it may be where a function imports its root; `local` tells of
    a root that a function binds to something else; `owners` are the classes whose body it is in.
    """

    text: str
    leaf: str
    kind: ReferenceKind
    scope: str
    line: int
    on_import: bool
    call: CallForm | None = None
    within: str = ""
    receiver: Receiver | None = None
    imported: tuple[str, ...] = ()
    local: bool = False
    owners: tuple[str, ...] = ()
    guard: str | None = None


@dataclass
class _Frame:
    """A class or function around the node that is looked at; most are never asked anything."""

    name: str
    node: ast.AST
    absolute: Callable[[ast.ImportFrom], str]
    receiver: str = ""

    @property
    def is_class(self) -> bool:
        return isinstance(self.node, ast.ClassDef)

    @cached_property
    def _binds(self) -> tuple[frozenset[str], dict[str, tuple[str, ...]]]:
        assert isinstance(self.node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        return _bound_in(self.node, self.absolute)

    @property
    def bound(self) -> frozenset[str]:
        """The names that a function binds itself."""
        return self._binds[0]

    @property
    def imports(self) -> dict[str, tuple[str, ...]]:
        """What a function imports: the paths that a name may be."""
        return self._binds[1]

    @cached_property
    def hints(self) -> dict[str, str]:
        """The classes of a function's variables, of a class's attributes."""
        if isinstance(self.node, ast.ClassDef):
            return class_hints(self.node)
        if isinstance(self.node, ast.FunctionDef | ast.AsyncFunctionDef):
            return local_hints(self.node)
        return {}


@dataclass(frozen=True, slots=True)
class _Role:
    """What an expression is there for, and the name that gets to hold it."""

    kind: ReferenceKind = "other"
    within: str = ""


_OTHER = _Role()


def find_uses(
    tree: ast.Module,
    absolute: Callable[[ast.ImportFrom], str],
    names: Collection[str],
    lines: Sequence[int],
) -> tuple[Use, ...]:
    """Every use in a module of a name, or of something below a name, that is of interest.

    `lines` are those on which one of the names stands, in order: the rest is not looked at.
    """
    finder = _Finder(absolute, names, lines)
    finder.statements(tree.body)
    return tuple(finder.found)


class _Finder:
    def __init__(
        self,
        absolute: Callable[[ast.ImportFrom], str],
        names: Collection[str],
        lines: Sequence[int],
    ) -> None:
        self._lines = lines
        self.found: list[Use] = []
        self._absolute = absolute
        self._names = names
        self._frames: list[_Frame] = []
        self._on_import = True
        self._guards: list[tuple[ast.expr, bool]] = []

    def statements(self, body: Iterable[ast.stmt]) -> None:
        for node in body:
            first = node.lineno
            if isinstance(node, syntax.DefinitionNode) and node.decorator_list:
                first = node.decorator_list[0].lineno
            at = bisect_left(self._lines, first)
            if at < len(self._lines) and self._lines[at] <= (node.end_lineno or first):
                self._statement(node)

    def _statement(self, node: ast.stmt) -> None:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            self._function(node)
        elif isinstance(node, ast.ClassDef):
            self._class(node)
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                self._target(target)
            self._value(node.value, node.targets[0])
        elif isinstance(node, ast.AnnAssign):
            self._expression(node.annotation, _Role("annotation"))
            self._target(node.target)
            if node.value is not None:
                self._value(node.value, node.target)
        elif isinstance(node, ast.If):
            self._if(node)
        elif not isinstance(node, ast.Import | ast.ImportFrom):
            self._children(node, _OTHER)

    def _if(self, node: ast.If) -> None:
        self._expression(node.test, _OTHER)
        if not syntax.is_type_checking(node.test):
            was = self._on_import
            self._on_import = was and not syntax.is_main(node.test)
            self._guards.append((node.test, True))
            self.statements(node.body)
            self._guards.pop()
            self._on_import = was
        self._guards.append((node.test, False))
        self.statements(node.orelse)
        self._guards.pop()

    def _guard(self) -> str | None:
        """The conditions around what runs on import; inside functions nobody asks."""
        return syntax.guard_of(self._guards) if self._on_import else None

    def _value(self, value: ast.expr, target: ast.expr) -> None:
        name = syntax.dotted(target) or ""
        in_class = bool(self._frames) and self._frames[-1].is_class
        self._expression(value, _Role("class_attribute" if in_class else "alias", name))

    def _target(self, target: ast.expr) -> None:
        if isinstance(target, ast.Attribute | ast.Subscript):
            self._expression(target.value, _OTHER)
            if isinstance(target, ast.Subscript):
                self._expression(target.slice, _OTHER)
        elif isinstance(target, ast.Tuple | ast.List):
            for item in target.elts:
                self._target(item)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        for decorator in node.decorator_list:
            self._decorator(decorator)
        self._arguments(node.args)
        if node.returns is not None:
            self._expression(node.returns, _Role("annotation"))
        self._inside(self._frame(node), lambda: self.statements(node.body))

    def _frame(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> _Frame:
        frame = _Frame(getattr(node, "name", "<lambda>"), node, self._absolute)
        if isinstance(node, ast.Lambda):
            return frame
        plain = [*node.args.posonlyargs, *node.args.args]
        marks = {syntax.decorator_name(item) for item in node.decorator_list}
        if self._frames and self._frames[-1].is_class and plain and "staticmethod" not in marks:
            frame.receiver = plain[0].arg
        return frame

    def _inside(self, frame: _Frame, visit: Callable[[], None]) -> None:
        was = self._on_import
        self._on_import = was and frame.is_class
        self._frames.append(frame)
        visit()
        self._frames.pop()
        self._on_import = was

    def _arguments(self, arguments: ast.arguments) -> None:
        for default in [*arguments.defaults, *arguments.kw_defaults]:
            if default is not None:
                self._expression(default, _Role("default"))
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        every += [item for item in (arguments.vararg, arguments.kwarg) if item is not None]
        for item in every:
            if item.annotation is not None:
                self._expression(item.annotation, _Role("annotation"))

    def _class(self, node: ast.ClassDef) -> None:
        for decorator in node.decorator_list:
            self._decorator(decorator)
        for base in node.bases:
            self._expression(base, _Role("subclass", node.name))
        for keyword in node.keywords:
            self._expression(keyword.value, _Role("argument"))
        self._inside(_Frame(node.name, node, self._absolute), lambda: self.statements(node.body))

    def _decorator(self, node: ast.expr) -> None:
        if isinstance(node, ast.Call) and syntax.dotted(node.func) is not None:
            self._named(node.func, _Role("decorator"), _form(node, False))
            self._call_arguments(node, "argument")
        else:
            self._expression(node, _Role("decorator"))

    def _expression(self, node: ast.expr, role: _Role) -> None:
        if isinstance(node, ast.Name | ast.Attribute):
            self._named(node, role, None)
        elif isinstance(node, ast.Call):
            self._call(node, role)
        elif isinstance(node, ast.Constant):
            if role.kind == "annotation" and isinstance(node.value, str):
                self._quoted(node.value)
        elif isinstance(node, _CONTAINERS):
            inner = role if role.kind == "annotation" else replace(role, kind="container")
            for item in node.elts:
                self._expression(item, inner)
        elif isinstance(node, ast.Dict):
            for key in node.keys:
                if key is not None:
                    self._expression(key, replace(role, kind="container"))
            for value in node.values:
                self._expression(value, replace(role, kind="container"))
        elif isinstance(node, ast.IfExp):
            self._expression(node.test, _OTHER)
            self._expression(node.body, role)
            self._expression(node.orelse, role)
        elif isinstance(node, ast.BoolOp):
            for item in node.values:
                self._expression(item, role)
        elif isinstance(node, ast.Lambda):
            self._arguments(node.args)
            body = node.body
            self._inside(self._frame(node), lambda: self._expression(body, _OTHER))
        elif isinstance(node, ast.Starred | ast.Await | ast.NamedExpr):
            self._expression(node.value, role)
        elif isinstance(node, ast.Subscript) and role.kind in ("annotation", "subclass"):
            self._expression(node.value, role)
            self._expression(node.slice, _Role("annotation"))
        else:
            self._children(node, _OTHER)

    def _children(self, node: ast.AST, role: _Role) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self._expression(child, role)
            elif isinstance(child, ast.stmt):
                self._statement(child)
            else:
                self._children(child, role)

    def _quoted(self, text: str) -> None:
        try:
            self._expression(ast.parse(text, mode="eval").body, _Role("annotation"))
        except (SyntaxError, ValueError):
            return

    def _call(self, node: ast.Call, role: _Role) -> None:
        func = node.func
        if isinstance(func, ast.Subscript) and syntax.dotted(func.value) is not None:
            self._named(func.value, replace(role, kind="launch"), _form(node, True))
            self._expression(func.slice, _Role("argument"))
        elif isinstance(func, ast.Attribute | ast.Name):
            self._named(func, replace(role, kind="call"), _form(node, False))
        else:
            self._expression(func, _OTHER)
        leaf = (syntax.dotted(func) or "").rpartition(".")[2]
        self._call_arguments(node, "partial" if leaf in _PARTIALS else "argument", role.within)

    def _call_arguments(self, node: ast.Call, kind: ReferenceKind, within: str = "") -> None:
        role = _Role(kind, within)
        for item in node.args:
            self._expression(item, role)
        for keyword in node.keywords:
            self._expression(keyword.value, role)

    def _named(self, node: ast.expr, role: _Role, form: CallForm | None) -> None:
        text = syntax.dotted(node)
        if text is None:
            assert isinstance(node, ast.Attribute)
            self._hanging(node, role, form)
            return
        root, _, rest = text.partition(".")
        leaf = text.rpartition(".")[2]
        if leaf not in self._names and root not in self._names:
            return
        local, imported = self._root(root)
        if rest:
            imported = tuple(f"{path}.{rest}" for path in imported)
        at_class = bool(self._frames) and self._frames[-1].is_class
        self._add(
            Use(
                text=text,
                leaf=leaf,
                kind=role.kind,
                scope=self._scope(),
                line=node.lineno,
                on_import=self._on_import,
                call=form,
                within=role.within,
                receiver=self._receiver(text) if rest else None,
                imported=imported,
                local=local,
                owners=tuple(f.name for f in self._frames) if at_class else (),
                guard=self._guard(),
            )
        )

    def _hanging(self, node: ast.Attribute, role: _Role, form: CallForm | None) -> None:
        """`expression.name`, for example the method of what a call returns."""
        if node.attr in self._names:
            receiver: Receiver | None = None
            base = node.value
            if isinstance(base, ast.Call):
                called = syntax.dotted(base.func)
                if called == "super":
                    receiver = Receiver("super", self._class_name())
                elif called is not None:
                    receiver = Receiver("made", called)
            self._add(
                Use(
                    text="",
                    leaf=node.attr,
                    kind=role.kind,
                    scope=self._scope(),
                    line=node.end_lineno or node.lineno,
                    on_import=self._on_import,
                    call=form,
                    within=role.within,
                    receiver=receiver,
                )
            )
        self._expression(node.value, _OTHER)

    def _add(self, use: Use) -> None:
        self.found.append(use)

    def _scope(self) -> str:
        return ".".join(frame.name for frame in self._frames)

    def _root(self, name: str) -> tuple[bool, tuple[str, ...]]:
        """Whether a function around binds the name, and the paths that one imports it from."""
        for frame in reversed(self._frames):
            if frame.is_class:
                continue
            if name in frame.imports:
                return True, frame.imports[name]
            if name in frame.bound:
                return True, ()
        return False, ()

    def _class_name(self) -> str:
        """The qualified name of the nearest class around."""
        for index in range(len(self._frames) - 1, -1, -1):
            if self._frames[index].is_class:
                return ".".join(frame.name for frame in self._frames[: index + 1])
        return ""

    def _receiver(self, text: str) -> Receiver | None:
        """What the text tells of the object before the last dot."""
        parts = text.split(".")[:-1]
        for index in range(len(self._frames) - 1, -1, -1):
            frame = self._frames[index]
            if frame.is_class:
                continue
            if frame.receiver == parts[0]:
                owner = self._frames[index - 1]
                if len(parts) == 1:
                    name = ".".join(f.name for f in self._frames[:index])
                    return Receiver("self", name)
                hint = owner.hints.get(parts[1]) if len(parts) == 2 else None
                return Receiver("made", hint) if hint else None
            if len(parts) == 1 and parts[0] in frame.hints:
                return Receiver("made", frame.hints[parts[0]])
            if parts[0] in frame.bound:
                return None
        return None


def _form(node: ast.Call, grid: bool) -> CallForm:
    named = [item for item in node.keywords if item.arg is not None]
    plain = [item for item in node.args if not isinstance(item, ast.Starred)]
    return CallForm(
        positional=len(plain),
        keywords=tuple(item.arg for item in named if item.arg is not None),
        star=len(plain) != len(node.args),
        double_star=len(named) != len(node.keywords),
        grid=grid,
        arguments=tuple(ast.unparse(item) for item in plain)
        + tuple(ast.unparse(item.value) for item in named),
    )


def _bound_in(
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda,
    absolute: Callable[[ast.ImportFrom], str],
) -> tuple[frozenset[str], dict[str, tuple[str, ...]]]:
    """The names that a function binds, and the paths of those that it imports."""
    arguments = node.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    every += [item for item in (arguments.vararg, arguments.kwarg) if item is not None]
    bound = {item.arg for item in every}
    imports: dict[str, tuple[str, ...]] = {}
    outer: set[str] = set()
    pending: list[ast.AST] = [node.body] if isinstance(node, ast.Lambda) else list(node.body)
    while pending:
        item = pending.pop()
        if isinstance(item, syntax.DefinitionNode):
            bound.add(item.name)
            continue
        if isinstance(item, ast.Lambda):
            continue
        if isinstance(item, ast.Name):
            if not isinstance(item.ctx, ast.Load):
                bound.add(item.id)
        elif isinstance(item, ast.Global | ast.Nonlocal):
            outer.update(item.names)
        elif isinstance(item, ast.ExceptHandler) and item.name:
            bound.add(item.name)
        elif isinstance(item, ast.ImportFrom):
            source = absolute(item)
            for alias in item.names:
                name = alias.asname or alias.name
                imports[name] = (*imports.get(name, ()), f"{source}.{alias.name}")
        elif isinstance(item, ast.Import):
            for alias in item.names:
                first = alias.name.partition(".")[0]
                name = alias.asname or first
                path = alias.name if alias.asname else first
                imports[name] = (*imports.get(name, ()), path)
        pending.extend(ast.iter_child_nodes(item))
    return frozenset(bound - outer), imports

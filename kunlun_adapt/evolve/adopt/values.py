"""What an expression of the plugin is known to be, without running it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True, eq=False, repr=False)
class Value:
    """Base of all values; `path` is where a module of the plugin holds it, None for a local one."""

    path: str | None = field(default=None, kw_only=True)


@dataclass(slots=True, eq=False, repr=False)
class Const(Value):
    """A plain value: text, number, bool, None, bytes."""

    value: Any


@dataclass(slots=True, eq=False, repr=False)
class External(Value):
    """Something outside the plugin, by its dotted path as the plugin names it.

    `imported` tells that an import statement bound it: that fails where it is not there. `since`
    is how many things outside the plugin had changed by the time it was looked up.
    """

    name: str
    imported: bool = False
    since: int = 0


@dataclass(slots=True, eq=False, repr=False)
class ModuleValue(Value):
    """A module of the plugin."""

    name: str


@dataclass(slots=True, eq=False, repr=False)
class Function(Value):
    """A function of the plugin, with the scope that it was defined in; `bound` is its self."""

    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    scope: Scope
    bound: Value | None = None

    @property
    def label(self) -> str:
        return getattr(self.node, "name", "a lambda")


@dataclass(slots=True, eq=False, repr=False)
class ClassValue(Value):
    """A class of the plugin; `scope` holds its own members."""

    node: ast.ClassDef
    scope: Scope
    bases: tuple[Value, ...] = ()

    def mro(self) -> Iterator[Value]:
        """Yield it and its bases, depth first, each once; a base may be outside the plugin."""
        seen: list[Value] = []
        queue: list[Value] = [self]
        while queue:
            one = queue.pop(0)
            if any(one is s for s in seen):
                continue
            seen.append(one)
            yield one
            if isinstance(one, ClassValue):
                queue = [*one.bases, *queue]

    def member(self, name: str) -> Value | None:
        for one in self.mro():
            if isinstance(one, ClassValue) and name in one.scope.names:
                return one.scope.names[name]
        return None


@dataclass(slots=True, eq=False, repr=False)
class Instance(Value):
    """An object that the plugin makes of one of its classes."""

    cls: ClassValue
    attributes: dict[str, Value] = field(default_factory=dict)


@dataclass(slots=True, eq=False, repr=False)
class ListValue(Value):
    """A list, tuple or set whose entries are known; `more` says that others may follow."""

    items: list[Value]
    more: bool = False
    how: str = "list"


@dataclass(slots=True, eq=False, repr=False)
class DictValue(Value):
    """A dict whose entries are known, in order; `more` says that others may follow.

    `factory` makes what a `defaultdict` has under a key that is not there.
    """

    items: list[tuple[Value, Value]]
    more: bool = False
    factory: Value | None = None

    def get(self, key: Value) -> Value | None:
        return next((v for k, v in reversed(self.items) if same(k, key)), None)

    def put(self, key: Value, value: Value) -> None:
        self.items[:] = [(k, v) for k, v in self.items if not same(k, key)] + [(key, value)]


@dataclass(slots=True, eq=False, repr=False)
class Made(Value):
    """What a call of something outside the plugin returned: the callee and its arguments."""

    callee: str
    args: list[Value] = field(default_factory=list)
    keywords: dict[str, Value] = field(default_factory=dict)
    line: int = 0
    attributes: dict[str, Value] = field(default_factory=dict)


@dataclass(slots=True, eq=False, repr=False)
class Wrapped(Value):
    """A function as staticmethod, classmethod, property or functools.partial holds it."""

    how: str
    inner: Value
    args: list[Value] = field(default_factory=list)
    keywords: dict[str, Value] = field(default_factory=dict)


@dataclass(slots=True, eq=False, repr=False)
class Unknown(Value):
    """Something that only a run would tell; `upstream` says that it may be upstream's."""

    why: str
    upstream: bool = False


@dataclass(slots=True, eq=False, repr=False)
class Scope:
    """The names of a module, class or function; `stars` are foreign modules taken in by `*`."""

    module: str
    qualname: str | None
    parent: Scope | None = None
    names: dict[str, Value] = field(default_factory=dict)
    stars: list[str] = field(default_factory=list)
    is_class: bool = False
    globals: set[str] = field(default_factory=set)
    outer: set[str] = field(default_factory=set)

    def find(self, name: str) -> Value | None:
        """Look a name up as Python does: a class's names are not seen from its methods."""
        scope: Scope | None = self
        first = True
        while scope is not None:
            if name in scope.names and (first or not scope.is_class):
                return scope.names[name]
            scope, first = scope.parent, False
        return None

    @property
    def top(self) -> Scope:
        scope = self
        while scope.parent is not None:
            scope = scope.parent
        return scope

    def holder(self, name: str) -> Scope:
        """Return the scope that an assignment to the name changes."""
        if name in self.globals:
            return self.top
        if name in self.outer and self.parent is not None:
            scope: Scope | None = self.parent
            while scope is not None:
                if name in scope.names and not scope.is_class:
                    return scope
                scope = scope.parent
        return self

    def bind(self, name: str, value: Value) -> None:
        holder = self.holder(name)
        if holder.names.get(name) is not value:
            holder.unbind(name)
        holder.names[name] = value
        # What a module or a class of it holds can be named from outside.
        if value.path is None and holder.qualname is not None:
            value.path = f"{holder.module}:{holder.qualname}{name}"

    def unbind(self, name: str) -> None:
        """Take a name away: it no longer leads to what it was given to."""
        held = self.names.pop(name, None)
        if held is not None and held.path == f"{self.module}:{self.qualname}{name}":
            held.path = None


def same(one: Value, other: Value) -> bool:
    """Tell whether two values are known to be the same."""
    if isinstance(one, Const) and isinstance(other, Const):
        return type(one.value) is type(other.value) and bool(one.value == other.value)
    if isinstance(one, External) and isinstance(other, External):
        return one.name == other.name
    if isinstance(one, ModuleValue) and isinstance(other, ModuleValue):
        return one.name == other.name
    return one is other


def truth(value: Value) -> bool | None:
    """Tell whether a value counts as true, None where nobody can tell."""
    if isinstance(value, Const):
        return bool(value.value)
    if isinstance(value, (Function, ClassValue, ModuleValue, Instance, Wrapped)):
        return True
    if isinstance(value, (ListValue, DictValue)):
        return True if value.items else (None if value.more else False)
    return None


def plain(value: Value | None) -> tuple[bool, Any]:
    """Return (True, the Python value) of constants and of containers of them."""
    if isinstance(value, Const):
        return True, value.value
    if isinstance(value, ListValue) and not value.more:
        found = [plain(v) for v in value.items]
        return all(ok for ok, _ in found), [v for _, v in found]
    if isinstance(value, DictValue) and not value.more:
        pairs = [(plain(k), plain(v)) for k, v in value.items]
        if all(k[0] and v[0] and isinstance(k[1], (str, int)) for k, v in pairs):
            return True, {k[1]: v[1] for k, v in pairs}
    return False, None


def storable(value: Value | None) -> bool:
    """Tell whether YAML gives the very same back: plain values, and lists of such."""
    if isinstance(value, ListValue):
        return value.how == "list" and not value.more and all(map(_scalar, value.items))
    return _scalar(value)


def _scalar(value: Value | None) -> bool:
    return isinstance(value, Const) and isinstance(value.value, (bool, int, float, str, type(None)))


def text_of(value: Value | None) -> str | None:
    """Return a known text."""
    if isinstance(value, Const) and isinstance(value.value, str):
        return value.value
    return None

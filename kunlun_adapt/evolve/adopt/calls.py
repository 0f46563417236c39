"""Follow calls into the plugin's own functions and classes."""

from __future__ import annotations

import ast
from abc import abstractmethod
from typing import TYPE_CHECKING

from kunlun_adapt.evolve.adopt.effects import Effects
from kunlun_adapt.evolve.adopt.events import Place
from kunlun_adapt.evolve.adopt.expressions import fields_of, joined
from kunlun_adapt.evolve.adopt.frames import MOST_DEPTH, Frame
from kunlun_adapt.evolve.adopt.values import (
    ClassValue,
    Const,
    DictValue,
    External,
    Function,
    Instance,
    ListValue,
    Made,
    Scope,
    Unknown,
    Value,
    Wrapped,
    text_of,
)

if TYPE_CHECKING:
    from kunlun_adapt.evolve.adopt.sources import Sources

FOLLOWED = 3
"""How often a function is followed with the same arguments before its result is kept."""
MOST_RECURSION = 12
"""How deep a function is followed into itself, where arguments may tell it apart."""

_HANDS_ON = ("functools.wraps",)
_OPERATOR_NAMES: dict[type[ast.operator], str] = {
    ast.Add: "add",
    ast.BitOr: "or",
    ast.LShift: "lshift",
    ast.MatMult: "matmul",
    ast.RShift: "rshift",
}


class Calls(Effects):
    """Binds arguments to parameters and reads the bodies that they run."""

    def __init__(self, sources: Sources) -> None:
        super().__init__(sources)
        self._followed: dict[object, tuple[int, Value]] = {}
        self._kept: list[object] = []
        self.classes: list[Value] = []

    @abstractmethod
    def block(self, body: list[ast.stmt], scope: Scope) -> str | None:
        """Read statements, and tell how they end."""

    def called_value(self, node: ast.Call, scope: Scope) -> Value:
        """Evaluate a call, and keep what it changes."""
        if isinstance(node.func, ast.Attribute):
            held = self.value(node.func.value, scope)
            method = node.func.attr
            if isinstance(held, (Const, ListValue, DictValue)):
                args, keywords, _ = self.arguments(node, scope)
                if isinstance(held, ListValue):
                    return self.method_of_list(held, method, args)
                if isinstance(held, DictValue):
                    return self.method_of_dict(held, method, args, keywords)
                return self.method_of_text(held, method, args, keywords)
            callee = self._inherited(node.func, scope) or self.attribute(held, method)
        else:
            callee = self.value(node.func, scope)
        args, keywords, open_ = self.arguments(node, scope)
        return self._call(callee, args, keywords, node, scope, open_)

    def _inherited(self, node: ast.Attribute, scope: Scope) -> Value | None:
        """Return the method that `super().method` names, where the plugin has it."""
        called = node.value
        if not (isinstance(called, ast.Call) and getattr(called.func, "id", "") == "super"):
            return None
        nobody = Unknown("a method of a base class")
        inner: Scope | None = scope
        while inner is not None and not (inner.parent is not None and inner.parent.is_class):
            inner = inner.parent
        if inner is None:
            return nobody
        cls = next((c for c in self.classes if getattr(c, "scope", None) is inner.parent), None)
        me = next(iter(inner.names.values()), nobody)
        mine = me.cls if isinstance(me, Instance) else me if isinstance(me, ClassValue) else cls
        mro = list(mine.mro()) if isinstance(mine, ClassValue) else []
        after = mro[next((i for i, one in enumerate(mro) if one is cls), len(mro)) + 1 :]
        for base in after:
            found = base.scope.names.get(node.attr) if isinstance(base, ClassValue) else nobody
            if isinstance(found, Wrapped) and found.how in ("staticmethod", "classmethod"):
                found = found.inner
            if found is not None:
                return self._bound(found, me)
        return nobody

    def method_called(self, held: Instance, name: str, args: list[Value]) -> Value | None:
        """Call a method that the plugin's class has; None where it has none."""
        method = held.cls.member(name)
        if not isinstance(method, Function):
            return None
        return self.follow(Function(method.node, method.scope, held, path=method.path), args, {})

    def _bound(self, found: Value, holder: Value) -> Value:
        if isinstance(found, Wrapped) and found.how == "property":
            inner = found.inner
            if isinstance(inner, Function) and isinstance(holder, Instance):
                return self.follow(Function(inner.node, inner.scope, holder), [], {})
        return super()._bound(found, holder)

    def operated(
        self, left: Value, op: ast.operator, right: Value, prefix: str = ""
    ) -> Value | None:
        """Apply an operator that a class of the plugin's defines."""
        name = _OPERATOR_NAMES.get(type(op))
        if not isinstance(left, Instance) or name is None:
            return None
        found = self.method_called(left, f"__{prefix}{name}__", [right])
        return self.method_called(left, f"__{name}__", [right]) if found is None else found

    def _BinOp(self, node: ast.BinOp, scope: Scope) -> Value:
        if isinstance(node.op, tuple(_OPERATOR_NAMES)) and isinstance(node.left, ast.Name):
            left = self.value(node.left, scope)
            if isinstance(left, Instance):
                found = self.operated(left, node.op, self.value(node.right, scope))
                return Unknown("an operation") if found is None else found
        return super()._BinOp(node, scope)

    def set_entry(self, held: Value, key: Value, value: Value, node: ast.AST, scope: Scope) -> None:
        if isinstance(held, Instance):
            self.method_called(held, "__setitem__", [key, value])
        else:
            super().set_entry(held, key, value, node, scope)

    def entry(self, held: Value, key: Value) -> Value:
        found = None
        if isinstance(held, Instance):
            found = self.method_called(held, "__getitem__", [key])
        elif isinstance(held, ClassValue):
            found = self._class_entry(held, key)
        return super().entry(held, key) if found is None else found

    def metaclass_of(self, cls: ClassValue) -> ClassValue | None:
        """Return the metaclass of the plugin's that a class or a base of it states."""
        for one in (c for c in cls.mro() if isinstance(c, ClassValue)):
            stated = [k.value for k in one.node.keywords if k.arg == "metaclass"]
            meta = self.value(stated[0], one.scope) if stated else None
            if isinstance(meta, ClassValue):
                return meta
        return None

    def _class_entry(self, cls: ClassValue, key: Value) -> Value | None:
        """Follow `Class[key]`; None where no class of the plugin's says what that gives."""
        meta = self.metaclass_of(cls)
        method = meta.member("__getitem__") if meta is not None else None
        method = method or cls.member("__class_getitem__")
        method = method.inner if isinstance(method, Wrapped) else method
        if not isinstance(method, Function):
            return None
        # Either gets the class first, be it stated as a classmethod or not.
        bound = Function(method.node, method.scope, cls, path=method.path)
        return self.follow(bound, [key], {})

    def items_of(self, value: Value) -> list[Value] | None:
        if isinstance(value, Instance) and value.cls.member("__iter__") is not None:
            found = self.method_called(value, "__iter__", [])
            return None if found is None else super().items_of(found)
        return super().items_of(value)

    def fresh_of(self, factory: Value) -> Value:
        if isinstance(factory, (Function, ClassValue)):
            return self.call(factory, [], factory.node, factory.scope)
        return super().fresh_of(factory)

    def arguments(self, node: ast.Call, scope: Scope) -> tuple[list[Value], dict[str, Value], bool]:
        """Evaluate a call's arguments; the last tells that there may be more of them."""
        args: list[Value] = []
        keywords: dict[str, Value] = {}
        open_ = False
        for item in node.args:
            if isinstance(item, ast.Starred):
                inner = self.items_of(self.value(item.value, scope))
                args += inner or []
                open_ |= inner is None
            else:
                args.append(self.value(item, scope))
        for keyword in node.keywords:
            found = self.value(keyword.value, scope)
            if keyword.arg is not None:
                keywords[keyword.arg] = found
            elif isinstance(found, DictValue):
                keywords |= {k: v for key, v in found.items if (k := text_of(key))}
                open_ |= found.more
            else:
                open_ = True
        return args, keywords, open_

    def call(self, callee: Value, args: list[Value], node: ast.AST, scope: Scope) -> Value:
        return self._call(callee, args, {}, node, scope)

    def _call(
        self,
        callee: Value,
        args: list[Value],
        keywords: dict[str, Value],
        node: ast.AST,
        scope: Scope,
        open_: bool = False,
    ) -> Value:
        if isinstance(callee, Function):
            return self.follow(callee, args, keywords, open_, self.place(scope, node))
        if isinstance(callee, ClassValue):
            return self._instance(callee, args, keywords)
        if isinstance(callee, Wrapped):
            given, named = [*callee.args, *args], {**callee.keywords, **keywords}
            return self._call(callee.inner, given, named, node, scope, open_)
        if isinstance(callee, Instance):
            method = callee.cls.member("__call__")
            if isinstance(method, Function):
                bound = Function(method.node, method.scope, callee, path=method.path)
                return self.follow(bound, args, keywords, open_)
        if isinstance(callee, External):
            call = node if isinstance(node, ast.Call) else None
            if call is None:  # a decorator without parentheses
                call = ast.Call(ast.Name(callee.name), [], [])
                ast.copy_location(call, node)
                ast.fix_missing_locations(call)
                if not callee.name.startswith("builtins."):
                    return self._plain_decorator(callee, args, call, scope)
            return self.external_call(callee.name, args, keywords, call, scope)
        if isinstance(callee, Made):
            if callee.callee.startswith(_HANDS_ON) and args:
                return args[0]
            return self.made_call(callee, args, node, scope)
        upstream = isinstance(callee, Unknown) and callee.upstream
        return Unknown("what a call returns that is not followed", upstream)

    def _plain_decorator(
        self, callee: External, args: list[Value], call: ast.Call, scope: Scope
    ) -> Value:
        found = self.external_call(callee.name, args, {}, call, scope)
        if isinstance(found, Wrapped):
            return found
        return args[0] if args else found

    def follow(
        self,
        function: Function,
        args: list[Value],
        keywords: dict[str, Value],
        open_: bool = False,
        at: Place | None = None,
    ) -> Value:
        """Read a function's body with these arguments; return what it returns."""
        node = function.node
        again = sum(f.node is node for f in self.frames)
        told = not self.sweeping and any(map(_says, [*args, *keywords.values()]))
        if len(self.frames) > MOST_DEPTH or again > (MOST_RECURSION if told else 1):
            return Unknown("a recursion")
        if self.sweeping and id(node) in self.seen and not any(map(_says, args)):
            return Unknown("what a function returns that was read already")
        bound = _key(function.bound) if function.bound is not None else None
        given = (*map(_key, args), *keywords, *map(_key, keywords.values()))
        key = (id(node), id(function.scope), bound, self.called, *given)
        times, known = self._followed.get(key, (0, Const(None)))
        if times >= (1 if self.sweeping else FOLLOWED):
            return known
        self._kept += [function, *args, *keywords.values()]  # an id must stay that of one object
        if function.bound is not None:
            args = [function.bound, *args]
        scope = Scope(function.scope.module, None, function.scope)
        self._bind(node.args, function, args, keywords, scope, open_)
        if isinstance(node, ast.Lambda):
            self.seen.add(id(node))
            found = self.value(node.body, scope)
        else:
            found = self._run(node, scope, at if args or keywords else None)
        self._followed[key] = (times + 1, found)
        return found

    def _run(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope, at: Place | None
    ) -> Value:
        self.seen.add(id(node))
        frame = Frame(node, called_at=at)
        if any(isinstance(n, (ast.Yield, ast.YieldFrom)) for n in _own(node)):
            frame.yielded = []
        self.frames.append(frame)
        try:
            ended = self.block(node.body, scope)
        finally:
            self.frames.pop()
        if frame.yielded is not None:
            return ListValue(frame.yielded)
        returned = frame.returned
        if ended is None:
            returned = [*returned, Const(None)]
        result = returned[0] if returned else Unknown("nothing, it only raises")
        for other in returned[1:]:
            result = joined(result, other, f"what {node.name} returns, by a condition")
        return result

    def _bind(
        self,
        parameters: ast.arguments,
        function: Function,
        args: list[Value],
        keywords: dict[str, Value],
        scope: Scope,
        open_: bool,
    ) -> None:
        ordered = [*parameters.posonlyargs, *parameters.args]
        optional = ordered[len(ordered) - len(parameters.defaults) :]
        defaults = {p.arg: d for p, d in zip(optional, parameters.defaults, strict=True)}
        named = zip(parameters.kwonlyargs, parameters.kw_defaults, strict=True)
        defaults |= {p.arg: d for p, d in named if d is not None}
        left = dict(keywords)
        for index, parameter in enumerate([*ordered, *parameters.kwonlyargs]):
            name = parameter.arg
            if index < len(args) and index < len(ordered):
                found = args[index]
            elif name in left:
                found = left.pop(name)
            elif name in defaults and not open_:
                found = self.value(defaults[name], function.scope)
            else:
                found = Unknown(f"the parameter {name}")
            scope.names[name] = found
        if parameters.vararg is not None:
            scope.names[parameters.vararg.arg] = ListValue(args[len(ordered) :], open_)
        if parameters.kwarg is not None:
            entries: list[tuple[Value, Value]] = [(Const(k), v) for k, v in left.items()]
            scope.names[parameters.kwarg.arg] = DictValue(entries, open_)

    def _instance(self, cls: ClassValue, args: list[Value], keywords: dict[str, Value]) -> Value:
        made = Instance(cls)
        init = cls.member("__init__")
        if isinstance(init, Function):
            self.follow(Function(init.node, init.scope, made), args, keywords)
            return made
        names = fields_of(cls)
        for name in names:
            default = cls.member(name)
            if isinstance(default, Made) and default.callee == "dataclasses.field":
                factory = default.keywords.get("default_factory")
                default = default.keywords.get("default")
                default = self.fresh_of(factory) if factory is not None else default
            if default is not None:
                made.attributes[name] = default
        made.attributes |= dict(zip(names, args, strict=False))
        made.attributes |= keywords
        self.method_called(made, "__post_init__", [])
        return made


def _own(node: ast.AST) -> list[ast.AST]:
    """Return the nodes of a body without those of the functions inside it."""
    found: list[ast.AST] = []
    queue = list(ast.iter_child_nodes(node))
    while queue:
        one = queue.pop()
        found.append(one)
        if not isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            queue += ast.iter_child_nodes(one)
    return found


def _says(value: Value) -> bool:
    """Tell whether an argument may decide what a function binds."""
    named = isinstance(value, Const) and isinstance(value.value, str)
    return named or not isinstance(value, (Const, Unknown))


def _key(value: Value) -> object:
    """Return what tells one argument from another."""
    if isinstance(value, Const):
        return repr(value.value)
    if isinstance(value, External):
        return value.name
    if isinstance(value, Unknown):
        return value.upstream
    return value.path or id(value)

"""What expressions of the plugin are known to be: names, texts, containers, attributes."""

from __future__ import annotations

import ast
import builtins
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from kunlun_adapt.evolve.adopt.frames import Track
from kunlun_adapt.evolve.adopt.values import (
    ClassValue,
    Const,
    DictValue,
    External,
    Function,
    Instance,
    ListValue,
    Made,
    ModuleValue,
    Scope,
    Unknown,
    Value,
    Wrapped,
    plain,
    same,
    truth,
)
from kunlun_adapt.plan import WRAPPING

UPSTREAM = "sglang"
MOST_TEXT = 4096
MOST_ITEMS = 20_000
_BUILTINS = frozenset(dir(builtins))
_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mod: operator.mod,
    ast.FloorDiv: operator.floordiv,
    ast.Mult: operator.mul,
    ast.BitOr: operator.or_,
}
_ORDER: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


class Expressions(Track, ABC):
    """Evaluates what does not call anything; calls are left to a derived class."""

    def value(self, node: ast.expr | None, scope: Scope) -> Value:
        """Return what is known of an expression."""
        if node is None:
            return Const(None)
        read: Callable[[Any, Scope], Value] | None = getattr(self, f"_{type(node).__name__}", None)
        return read(node, scope) if read is not None else Unknown("an expression of this kind")

    @abstractmethod
    def called_value(self, node: ast.Call, scope: Scope) -> Value:
        """Evaluate a call."""

    @abstractmethod
    def run_module(self, name: str) -> None:
        """Read a module of the plugin's, once."""

    @abstractmethod
    def package_path(self, module: str) -> Value:
        """Return what `__path__` of a package holds."""

    def is_object(self, name: str) -> bool:
        """Tell whether an imported name is a module, a class or a function."""
        return False

    def upstream_fact(self, name: str, attribute: str) -> Value:
        """Return `__module__` and its like of an object outside the plugin."""
        return Unknown(f"{attribute} of {name}", upstream=True)

    def _Constant(self, node: ast.Constant, scope: Scope) -> Value:
        return Const(node.value)

    def _Name(self, node: ast.Name, scope: Scope) -> Value:
        found = scope.find(node.id)
        if found is not None:
            return found
        if node.id in _BUILTINS:
            return External(f"builtins.{node.id}")
        stars = scope.top.stars
        if len(stars) == 1:
            return External(f"{stars[0]}.{node.id}")
        return Unknown(f"{node.id} is not defined here", upstream=bool(stars))

    def _Attribute(self, node: ast.Attribute, scope: Scope) -> Value:
        return self.attribute(self.value(node.value, scope), node.attr)

    def attribute(self, held: Value, name: str) -> Value:
        """Return what an object holds under a name."""
        if isinstance(held, External):
            if name in ("__module__", "__qualname__", "__name__"):
                return self.upstream_fact(held.name, name)
            return self.outside(f"{held.name}.{name}")
        if isinstance(held, ModuleValue):
            return self.module_member(held.name, name)
        if isinstance(held, ClassValue):
            return self._class_member(held, name)
        if isinstance(held, Instance):
            if name in held.attributes:
                return held.attributes[name]
            return self._bound(self._class_member(held.cls, name), held)
        if isinstance(held, Function):
            return self._function_fact(held, name)
        if (
            isinstance(held, (Const, ListValue)) and name == "value"
        ):  # of a member of an enumeration
            return held
        if isinstance(held, Made) and name in held.attributes:
            return held.attributes[name]
        if isinstance(held, Made):
            return External(f"{held.callee}().{name}") if name.isidentifier() else held
        if isinstance(held, Unknown):
            return Unknown(held.why, held.upstream)
        return Unknown(f"the attribute {name}")

    def outside(self, name: str, imported: bool = False) -> Value:
        return External(name, imported, self.changes)

    def as_it_was(self, value: Value) -> Value:
        """Return what was under a name when it was looked up: the plugin may have put it there."""
        if not isinstance(value, External) or value.name not in self.put:
            return value
        change, own, conditions = self.put[value.name]
        if change > value.since:
            return value
        if set(conditions) <= set(self.conditions()):
            return own
        return Unknown(f"one of two, by the condition at {conditions[-1].place}", True)

    def module_member(self, module: str, name: str) -> Value:
        """Return what a module of the plugin holds under a name, its submodules included."""
        self.run_module(module)
        scope = self.scopes.get(module)
        if scope is not None and name in scope.names:
            return scope.names[name]
        inner = f"{module}.{name}"
        if self.is_plugin(inner):
            self.run_module(inner)
            return ModuleValue(inner)
        if scope is not None and len(scope.stars) == 1:
            return External(f"{scope.stars[0]}.{name}")
        if name == "__name__":
            return Const(module)
        if name == "__dict__":
            return self.held_by(ModuleValue(module))
        if name == "__path__":
            return self.package_path(module)
        return Unknown(
            f"{module} has no {name} that is known", upstream=bool(scope and scope.stars)
        )

    def held_by(self, held: Value) -> Value:
        """Return the names that a module, a class or an object of the plugin holds itself."""
        names: dict[str, Value] = {}
        more = False
        if isinstance(held, ModuleValue) and held.name in self.scopes:
            names = self.scopes[held.name].names
            more = bool(self.scopes[held.name].stars)
        elif isinstance(held, ClassValue):
            names = held.scope.names
        elif isinstance(held, Instance):
            names = held.attributes
        else:
            return Unknown("what an object holds", getattr(held, "upstream", False))
        return DictValue([(Const(name), value) for name, value in names.items()], more)

    def is_plugin(self, module: str) -> bool:
        """Tell whether a dotted name is a module of the plugin, or a folder of such."""
        modules = self.sources.modules
        return module in modules or any(m.startswith(f"{module}.") for m in modules)

    def _class_member(self, cls: ClassValue, name: str) -> Value:
        found = cls.member(name)
        if isinstance(found, Wrapped) and found.how == "staticmethod":
            return found.inner
        if isinstance(found, Wrapped) and found.how == "classmethod":
            return self._bound(found.inner, cls)
        if found is not None:
            return found
        if name in ("__name__", "__qualname__"):
            return Const(cls.node.name)
        if name == "__module__":
            return Const(cls.scope.module)
        if name == "__dict__":
            return self.held_by(cls)
        outside = next((b for b in cls.mro() if isinstance(b, External)), None)
        if outside is not None:
            return External(f"{outside.name}.{name}")
        return Unknown(f"{cls.node.name} has no {name} that is known")

    def _bound(self, found: Value, holder: Value) -> Value:
        if isinstance(found, Wrapped) and found.how == "property":
            return Unknown("a property")
        if isinstance(found, Function) and found.bound is None:
            return Function(found.node, found.scope, holder, path=found.path)
        return found

    def _function_fact(self, held: Function, name: str) -> Value:
        if name in ("__name__", "__qualname__") and not isinstance(held.node, ast.Lambda):
            path = held.path or f":{held.node.name}"
            return Const(path.partition(":")[2] if name == "__qualname__" else held.node.name)
        if name == "__module__":
            return Const(held.scope.module)
        return Unknown(f"{name} of {held.label}")

    def _JoinedStr(self, node: ast.JoinedStr, scope: Scope) -> Value:
        parts = []
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                found = self.value(part.value, scope)
                if part.format_spec is not None or not isinstance(found, Const):
                    return Unknown(f"a text made of {ast.unparse(part.value)[:60]}", True)
                parts.append(repr(found.value) if part.conversion == 114 else str(found.value))
            elif isinstance(part, ast.Constant):
                parts.append(str(part.value))
        return Const("".join(parts)[:MOST_TEXT])

    def _BinOp(self, node: ast.BinOp, scope: Scope) -> Value:
        left, right = self.value(node.left, scope), self.value(node.right, scope)
        if isinstance(left, ListValue) and isinstance(right, ListValue):
            items = [*left.items, *right.items]
            more = left.more or right.more or len(items) > MOST_ITEMS
            return ListValue(items[:MOST_ITEMS], more, left.how)
        if isinstance(left, DictValue) and isinstance(right, DictValue):
            return DictValue([*left.items, *right.items], left.more or right.more)
        if isinstance(node.op, ast.Mult) and isinstance(left, ListValue):
            count = right.value if isinstance(right, Const) else None
            if isinstance(count, int) and 0 <= count * len(left.items) <= MOST_ITEMS:
                return ListValue(left.items * count, left.more, left.how)
        (known, one), (known_too, other) = plain(left), plain(right)
        compute = _OPERATORS.get(type(node.op))
        whole = isinstance(one, int) and isinstance(other, int) and abs(one * other) < 1 << 63
        if isinstance(node.op, ast.Mult) and not whole:
            return Unknown(f"{ast.unparse(node)[:60]}", True)
        if known and known_too and compute is not None:
            if isinstance(node.op, ast.Mod) and isinstance(one, str):
                other = tuple(other) if isinstance(right, ListValue) else other
                if any(c.isdigit() for c in one):  # "%99999999d" would fill the memory
                    return Unknown("a formatted text", True)
            try:
                made = compute(one, other)
            except (TypeError, ValueError, KeyError, ArithmeticError):
                return Unknown("an operation that fails")
            return Const(made[:MOST_TEXT] if isinstance(made, str) else made)
        return Unknown(f"{ast.unparse(node)[:60]}", True)

    def _BoolOp(self, node: ast.BoolOp, scope: Scope) -> Value:
        wanted = isinstance(node.op, ast.Or)
        last: Value = Const(not wanted)
        unknown: Value | None = None
        open_: list[str] = []
        parts: list[Value] = []
        for part in node.values:
            text = f" {'or' if wanted else 'and'} ".join(open_)
            text = f"not ({text})" if wanted else text
            with self.under(self.condition(text, part, scope) if open_ else None):
                last = self.value(part, scope)
            parts.append(last)
            if truth(last) is None:
                open_.append(ast.unparse(part)[:60])
            known = truth(last)
            if known is wanted and unknown is None:
                return last
            if known is wanted:
                return Unknown("a condition") if not wanted else last
            if known is None:
                unknown = last
        if unknown is not None and all(same(unknown, part) for part in parts):
            return unknown
        return Unknown("a condition") if unknown is not None else last

    def _UnaryOp(self, node: ast.UnaryOp, scope: Scope) -> Value:
        found = self.value(node.operand, scope)
        if isinstance(node.op, ast.Not):
            known = truth(found)
            return Unknown("a condition") if known is None else Const(not known)
        if isinstance(node.op, ast.USub) and isinstance(found, Const):
            return Const(-found.value) if isinstance(found.value, (int, float)) else found
        return Unknown("an operation")

    def _Compare(self, node: ast.Compare, scope: Scope) -> Value:
        left = self.value(node.left, scope)
        for op, comparator in zip(node.ops, node.comparators, strict=True):
            right = self.value(comparator, scope)
            known = self._compared(op, left, right)
            if known is None:
                return Unknown("a condition")
            if not known:
                return Const(False)
            left = right
        return Const(True)

    def _compared(self, op: ast.cmpop, left: Value, right: Value) -> bool | None:
        nothing = isinstance(right, Const) and right.value is None
        if nothing and isinstance(left, External) and left.imported and self.is_object(left.name):
            return not isinstance(op, (ast.Is, ast.Eq))
        return _compared(op, left, right)

    def _IfExp(self, node: ast.IfExp, scope: Scope) -> Value:
        known = truth(self.value(node.test, scope))
        if known is not None:
            return self.value(node.body if known else node.orelse, scope)
        text = ast.unparse(node.test)[:60]
        with self.under(self.condition(text, node.test, scope)):
            one = self.value(node.body, scope)
        with self.under(self.condition(f"not ({text})", node.test, scope)):
            other = self.value(node.orelse, scope)
        return joined(one, other, f"one of two, by {text}")

    def _items(self, nodes: Sequence[ast.expr], scope: Scope) -> ListValue:
        found = ListValue([])
        for node in nodes:
            if isinstance(node, ast.Starred):
                inner = self.items_of(self.value(node.value, scope))
                found.items += inner or []
                found.more |= inner is None
            else:
                found.items.append(self.value(node, scope))
        return found

    def _List(self, node: ast.List, scope: Scope) -> Value:
        return self._items(node.elts, scope)

    def _Tuple(self, node: ast.Tuple, scope: Scope) -> Value:
        found = self._items(node.elts, scope)
        found.how = "tuple"
        return found

    def _Set(self, node: ast.Set, scope: Scope) -> Value:
        found = self._items(node.elts, scope)
        found.how = "set"
        return found

    def _Dict(self, node: ast.Dict, scope: Scope) -> Value:
        found = DictValue([])
        for key, item in zip(node.keys, node.values, strict=True):
            value = self.value(item, scope)
            if key is not None:
                found.put(self.value(key, scope), value)
            elif isinstance(value, DictValue):
                for k, v in value.items:
                    found.put(k, v)
                found.more |= value.more
            else:
                found.more = True
        return found

    def _Starred(self, node: ast.Starred, scope: Scope) -> Value:
        return self.value(node.value, scope)

    def _NamedExpr(self, node: ast.NamedExpr, scope: Scope) -> Value:
        found = self.value(node.value, scope)
        scope.bind(node.target.id, found)
        return found

    def _Lambda(self, node: ast.Lambda, scope: Scope) -> Value:
        return Function(node, scope)

    def _Await(self, node: ast.Await, scope: Scope) -> Value:
        return self.value(node.value, scope)

    def _Yield(self, node: ast.Yield, scope: Scope) -> Value:
        found = self.value(node.value, scope)
        if self.frame.yielded is not None:
            self.frame.yielded.append(found)
        return Unknown("what is sent")

    def _YieldFrom(self, node: ast.YieldFrom, scope: Scope) -> Value:
        found = self.items_of(self.value(node.value, scope))
        if self.frame.yielded is not None:
            self.frame.yielded += found or []
        return Unknown("what is sent")

    def _Call(self, node: ast.Call, scope: Scope) -> Value:
        return self.called_value(node, scope)

    @abstractmethod
    def assign(self, target: ast.expr, value: Value, scope: Scope) -> None:
        """Give a target a value."""

    def imported(self, name: str) -> Value:
        """Return the module of a dotted name, of the plugin or not."""
        if self.is_plugin(name):
            parts = name.split(".")
            for count in range(1, len(parts) + 1):
                self.run_module(".".join(parts[:count]))
            return ModuleValue(name)
        return External(name)

    def items_of(self, value: Value) -> list[Value] | None:
        """Return what a loop over a value goes through, None where that is not known."""
        if isinstance(value, ListValue):
            return None if value.more else list(value.items)
        if isinstance(value, DictValue):
            return None if value.more else [key for key, _ in value.items]
        if isinstance(value, Const) and isinstance(value.value, str):
            return [Const(c) for c in value.value]
        if isinstance(value, External) and value.name.startswith(f"{UPSTREAM}."):
            kinds = WRAPPING if value.name.endswith(".HookType") else ()
            return [External(f"{value.name}.{kind.upper()}") for kind in kinds] or None
        if isinstance(value, ClassValue) and value.bases:  # an enumeration
            outside = [b.name for b in value.mro() if isinstance(b, External)]
            return _members(value) if any(b.startswith("enum.") for b in outside) else None
        if isinstance(value, Instance):
            fields = fields_of(value.cls)
            return [value.attributes.get(name, Unknown("a field")) for name in fields] or None
        return None


def known_items(value: ListValue | DictValue) -> list[Value]:
    """Return what is known of a container, whatever else may be in it."""
    return list(value.items) if isinstance(value, ListValue) else [key for key, _ in value.items]


def _members(enumeration: ClassValue) -> list[Value]:
    """Return the members of an enumeration: what they hold, unless they have methods too."""
    held = enumeration.scope.names
    named = [(n, v) for n, v in held.items() if not isinstance(v, (Function, Wrapped))]
    if len(named) == len(held):
        return [value for _, value in named]
    return [Instance(enumeration, {"name": Const(n), "value": v}) for n, v in named]


def fields_of(cls: ClassValue) -> list[str]:
    """Return the annotated names of a class and its bases, which a dataclass is made of."""
    found = [
        node.target.id
        for one in reversed([c for c in cls.mro() if isinstance(c, ClassValue)])
        for node in one.node.body
        if isinstance(node, ast.AnnAssign)
        and isinstance(node.target, ast.Name)
        and "ClassVar" not in ast.unparse(node.annotation)
    ]
    return list(dict.fromkeys(found))


def joined(one: Value, other: Value, why: str) -> Value:
    """Return what holds after two branches: of an object and nothing it is the object."""
    if same(one, other):
        return one
    nothing = [isinstance(v, Const) and v.value is None for v in (one, other)]
    if nothing[0] != nothing[1]:
        return other if nothing[0] else one
    upstream = any(isinstance(v, External) or getattr(v, "upstream", False) for v in (one, other))
    return Unknown(why, upstream)


def _compared(op: ast.cmpop, left: Value, right: Value) -> bool | None:
    if isinstance(op, (ast.Is, ast.IsNot, ast.Eq, ast.NotEq)):
        equal: bool | None = None
        if isinstance(left, Const) and isinstance(right, Const):
            equal = bool(left.value == right.value)
        elif (isinstance(right, Const) and right.value is None) or same(left, right):
            known = isinstance(left, (Function, ClassValue, ModuleValue, ListValue, DictValue))
            equal = True if same(left, right) else (False if known else None)
        if equal is None:
            return None
        return equal if isinstance(op, (ast.Is, ast.Eq)) else not equal
    (known, one), (known_too, other) = plain(left), plain(right)
    if not (known and known_too):
        return None
    try:
        if isinstance(op, (ast.In, ast.NotIn)):
            return bool((one in other) == isinstance(op, ast.In))
        compare = _ORDER.get(type(op))
        return None if compare is None else bool(compare(one, other))
    except TypeError:
        return None

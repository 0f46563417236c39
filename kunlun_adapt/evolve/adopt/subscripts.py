"""What a plugin takes out of containers: its own, sys.modules, the namespaces of upstream's."""

from __future__ import annotations

import ast

from kunlun_adapt.evolve.adopt.expressions import UPSTREAM, Expressions
from kunlun_adapt.evolve.adopt.values import (
    Const,
    DictValue,
    External,
    ListValue,
    Scope,
    Unknown,
    Value,
    plain,
    text_of,
)


class Subscripts(Expressions):
    """Evaluates entries and slices."""

    def _Subscript(self, node: ast.Subscript, scope: Scope) -> Value:
        held = self.value(node.value, scope)
        if isinstance(node.slice, ast.Slice):
            return self._part(held, node.slice, scope)
        return self.entry(held, self.value(node.slice, scope))

    def _part(self, held: Value, node: ast.Slice, scope: Scope) -> Value:
        ends = [plain(self.value(end, scope)) for end in (node.lower, node.upper, node.step)]
        known = all(ok and isinstance(end, (int, type(None))) for ok, end in ends)
        if not known or ends[2][1] == 0:
            return Unknown("a slice", True)
        cut = slice(*(end for _, end in ends))
        if isinstance(held, ListValue) and not held.more:
            return ListValue(held.items[cut], how=held.how)
        if isinstance(held, Const) and isinstance(held.value, str):
            return Const(held.value[cut])
        return Unknown("a slice", True)

    def entry(self, held: Value, key: Value) -> Value:
        """Return what a container holds under a key."""
        if isinstance(held, DictValue):
            found = held.get(key)
            if found is None and held.factory is not None and not held.more:
                found = self.fresh_of(held.factory)
                held.put(key, found)
            return found if found is not None else Unknown("an entry of a dict", held.more)
        index = key.value if isinstance(key, Const) else None
        if isinstance(held, ListValue) and isinstance(index, int) and not held.more:
            known = -len(held.items) <= index < len(held.items)
            return held.items[index] if known else Unknown("an entry of a list")
        text = text_of(held)
        if text is not None and isinstance(index, int) and -len(text) <= index < len(text):
            return Const(text[index])
        if isinstance(held, External):
            text = text_of(key)
            if held.name == "sys.modules":
                return self.imported(text) if text else Unknown("a module by name", True)
            if held.name.endswith("HookType") and text:
                return External(f"{held.name}.{text}")
            if held.name.endswith(".__dict__") and text:
                return self.outside(f"{held.name.removesuffix('.__dict__')}.{text}")
            return Unknown(f"an entry of {held.name}", held.name.startswith(f"{UPSTREAM}."))
        return Unknown("an entry", isinstance(held, Unknown) and held.upstream)

    def _Slice(self, node: ast.Slice, scope: Scope) -> Value:
        return Unknown("a slice")

    def fresh_of(self, factory: Value) -> Value:
        """Return the new object that a factory without arguments makes."""
        name = factory.name if isinstance(factory, External) else ""
        if name in ("builtins.list", "builtins.set", "builtins.tuple"):
            return ListValue([], how=name.partition(".")[2])
        return DictValue([]) if name == "builtins.dict" else Unknown("what a factory makes", True)

"""Calls that change nothing outside: methods of texts and containers, and builtin functions."""

from __future__ import annotations

from typing import Any

from kunlun_adapt.evolve.adopt.expressions import MOST_ITEMS, MOST_TEXT, known_items
from kunlun_adapt.evolve.adopt.loops import Loops
from kunlun_adapt.evolve.adopt.values import (
    ClassValue,
    Const,
    DictValue,
    External,
    Function,
    Instance,
    ListValue,
    ModuleValue,
    Unknown,
    Value,
    Wrapped,
    plain,
    text_of,
)

_TEXT = frozenset(
    (
        *("capitalize", "casefold", "endswith", "format", "join", "lower", "lstrip", "partition"),
        *("removeprefix", "removesuffix", "replace", "rpartition", "rsplit", "rstrip", "split"),
        *("startswith", "strip", "title", "upper"),
    )
)
_WRAPPERS = {"builtins.staticmethod": "staticmethod", "builtins.classmethod": "classmethod"}
_WRAPPERS |= {"builtins.property": "property", "functools.cached_property": "property"}


class PlainCalls(Loops):
    """Evaluates what can be told of a call without following it."""

    def method_of_text(
        self, held: Const, name: str, args: list[Value], keywords: dict[str, Value]
    ) -> Value:
        given = [plain(a) for a in args]
        named = {key: plain(value) for key, value in keywords.items()}
        if (
            name == "format"
            and isinstance(held.value, str)
            and any(c.isdigit() for c in held.value.partition(":")[2])
        ):
            return Unknown("a formatted text", True)  # "{:99999999}" would fill the memory
        if name in _TEXT and all(known for known, _ in (*given, *named.values())):
            by_name = {key: value for key, (_, value) in named.items()}
            try:
                made: Any = getattr(held.value, name)(*(value for _, value in given), **by_name)
            except (TypeError, ValueError, LookupError, AttributeError, OverflowError):
                return Unknown("a text")
            if isinstance(made, (list, tuple)):
                return ListValue([Const(part) for part in made[:MOST_ITEMS]])
            return Const(made[:MOST_TEXT] if isinstance(made, str) else made)
        return Unknown("a text", True)

    def method_of_list(self, held: ListValue, name: str, args: list[Value]) -> Value:
        if len(held.items) > MOST_ITEMS:
            held.more = True
        elif name in ("append", "add", "appendleft") and args:
            held.items.append(args[0])
        elif name == "insert" and len(args) > 1:
            held.items.append(args[1])
        elif name in ("extend", "update") and args:
            inner = self.items_of(args[0])
            held.items += inner or []
            held.more |= inner is None
        elif name in ("copy", "union"):
            more = [self.items_of(other) for other in args]
            both = [*held.items, *(item for items in more for item in items or ())]
            return ListValue(both, held.more or None in more, held.how)
        elif name == "pop" and held.items and not held.more:
            known, index = plain(args[0]) if args else (True, -1)
            if known and isinstance(index, int) and -len(held.items) <= index < len(held.items):
                return held.items.pop(index)
        elif name in ("clear", "remove", "pop", "popleft", "discard"):
            held.more = True
        return Const(None)

    def method_of_dict(
        self, held: DictValue, name: str, args: list[Value], keywords: dict[str, Value]
    ) -> Value:
        if name == "items":
            return ListValue([ListValue([k, v]) for k, v in held.items], held.more)
        if name == "keys":
            return ListValue([k for k, _ in held.items], held.more)
        if name == "values":
            return ListValue([v for _, v in held.items], held.more)
        if name == "copy":
            return DictValue(list(held.items), held.more)
        if name in ("get", "pop", "setdefault") and args:
            found = held.get(args[0])
            if found is None and name == "setdefault":
                found = args[1] if len(args) > 1 else Const(None)
                held.put(args[0], found)
            if found is None:
                absent = args[1] if len(args) > 1 else Const(None)
                return Unknown("an entry of a dict", True) if held.more else absent
            return found
        if name == "update":
            for other in args:
                entries = other.items if isinstance(other, DictValue) else []
                held.more |= not isinstance(other, DictValue) or other.more
                for key, value in entries:
                    held.put(key, value)
            for name_, value in keywords.items():
                held.put(Const(name_), value)
            return Const(None)
        held.more = True
        return Unknown("a dict")

    def builtin(self, name: str, args: list[Value], keywords: dict[str, Value]) -> Value | None:
        """Return what a function of the interpreter's or of functools gives; None for others."""
        if name in _WRAPPERS and args:
            return Wrapped(_WRAPPERS[name], args[0])
        if not name.startswith("builtins."):
            return None
        leaf = name.partition(".")[2]
        first = self.items_of(args[0]) if args else []
        if leaf in ("list", "tuple", "set", "frozenset", "sorted", "reversed", "iter"):
            how = leaf if leaf in ("tuple", "set", "frozenset") else "list"
            if first is None:
                if isinstance(args[0], (ListValue, DictValue)):
                    return ListValue(known_items(args[0]), True, how)
                return ListValue([], True, how)
            return ListValue(first[::-1] if leaf == "reversed" else first, how=how)
        if leaf == "dict":
            return self._dict(args, keywords)
        if leaf == "enumerate" and first is not None:
            return ListValue([ListValue([Const(i), v]) for i, v in enumerate(first)])
        if leaf == "zip":
            columns = [self.items_of(a) for a in args]
            known = [c for c in columns if c is not None]
            if len(known) == len(columns):
                return ListValue([ListValue(list(row)) for row in zip(*known, strict=False)])
        if leaf == "range":
            given = [plain(a)[1] for a in args]
            if all(isinstance(n, int) for n in given) and 0 < len(given) <= 3:
                try:
                    return ListValue([Const(n) for n in range(*given)[:MOST_ITEMS]])
                except (ValueError, OverflowError):
                    return Unknown("a range")
        if leaf == "len" and first is not None and args:
            return Const(len(first))
        if leaf == "str" and len(args) == 1 and isinstance(args[0], Const):
            return Const(str(args[0].value)[:MOST_TEXT])
        if leaf == "getattr" and len(args) > 1:
            return self._getattr(args)
        if leaf == "vars" and args:
            outside = isinstance(args[0], External)
            return self.attribute(args[0], "__dict__") if outside else self.held_by(args[0])
        if leaf == "dir" and args and isinstance(args[0], (Instance, ClassValue, ModuleValue)):
            return self._names_in(args[0])
        if leaf == "callable" and args and isinstance(args[0], (Function, ClassValue, Wrapped)):
            return Const(True)
        if leaf == "isinstance" and len(args) == 2:
            return self._is_one_of(args[0], self.items_of(args[1]) or [args[1]])
        if leaf == "hasattr" and len(args) == 2 and isinstance(args[0], (Instance, ClassValue)):
            return self._has(args[0], text_of(args[1]))
        return None

    def _is_one_of(self, value: Value, types: list[Value]) -> Value:
        """Answer isinstance, where the value and the types are known."""
        kind: str | None = None
        if isinstance(value, Const):
            kind = type(value.value).__name__
        elif isinstance(value, ListValue):
            kind = value.how
        elif isinstance(value, DictValue):
            kind = "dict"
        elif isinstance(value, (Function, ModuleValue)):
            kind = ""
        mro = list(value.cls.mro()) if isinstance(value, Instance) else []
        unknown = False
        for one in types:
            if isinstance(one, External) and one.name.startswith("builtins.") and kind is not None:
                name = one.name.partition(".")[2]
                if kind == name or (kind == "bool" and name == "int") or name == "object":
                    return Const(True)
            elif isinstance(one, ClassValue) and (mro or kind is not None):
                if any(base is one for base in mro):
                    return Const(True)
                unknown |= any(not isinstance(base, ClassValue) for base in mro)
            else:
                unknown = True
        return Unknown("a condition") if unknown else Const(False)

    def _names_in(self, held: Instance | ClassValue | ModuleValue) -> Value:
        cls = held.cls if isinstance(held, Instance) else held
        parts = cls.mro() if isinstance(cls, ClassValue) else ()
        names: set[str] = set()
        for part in (held, *parts):
            listed = self.held_by(part)
            names |= {text_of(key) or "" for key in self.items_of(listed) or []}
        return ListValue([Const(name) for name in sorted(names)])

    def _has(self, held: Instance | ClassValue, name: str | None) -> Value:
        cls = held.cls if isinstance(held, Instance) else held
        if name is None:
            return Unknown("a condition")
        if cls.member(name) is not None:
            return Const(True)
        if isinstance(held, Instance) and name in held.attributes:
            return Const(True)
        outside = any(not isinstance(base, ClassValue) for base in cls.mro())
        return Unknown("a condition") if outside or cls.member("__getattr__") else Const(False)

    def _dict(self, args: list[Value], keywords: dict[str, Value]) -> Value:
        found = DictValue([(Const(k), v) for k, v in keywords.items()])
        for given in args:
            if isinstance(given, DictValue):
                found.items[:0] = given.items
                found.more |= given.more
                continue
            rows = self.items_of(given)
            if rows is None:
                found.more = True
                continue
            for row in rows:
                pair = self.items_of(row) or []
                if len(pair) == 2:
                    found.put(pair[0], pair[1])
        return found

    def _getattr(self, args: list[Value]) -> Value:
        name = text_of(args[1])
        if name is None:
            upstream = isinstance(args[0], External) or getattr(args[0], "upstream", False)
            return Unknown("an attribute whose name is made at run time", bool(upstream))
        # With a default it may not be there; a marker of the plugin's own is then not known.
        if len(args) > 2 and not isinstance(args[0], Instance):
            found = self.attribute(args[0], name)
            return found if not isinstance(found, External) or name.isidentifier() else args[2]
        return self.attribute(args[0], name)

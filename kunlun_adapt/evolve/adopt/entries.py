"""What a plugin puts into containers that are not its own, and what it takes out of them."""

from __future__ import annotations

import ast
from abc import abstractmethod

from kunlun_adapt.evolve.adopt.events import Event, How, Place
from kunlun_adapt.evolve.adopt.expressions import UPSTREAM
from kunlun_adapt.evolve.adopt.library_calls import LibraryCalls
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
    same,
    text_of,
)

_KEPT = (f"{UPSTREAM}.", "sys.modules", "os.environ")


class Entries(LibraryCalls):
    """Keeps an event for each entry of sys.modules, os.environ or a container of upstream's."""

    stand_ins: list[tuple[Value, str]]

    @abstractmethod
    def set_attribute(
        self, held: Value, name: str | None, value: Value, node: ast.AST, scope: Scope
    ) -> None:
        """Assign an attribute."""

    def set_entry(self, held: Value, key: Value, value: Value, node: ast.AST, scope: Scope) -> None:
        """Assign an entry: of a container of the plugin's, of sys.modules or of upstream's."""
        place = self.place(scope, node)
        if isinstance(held, DictValue):
            held.put(key, value)
        elif isinstance(held, ListValue):
            held.more = True
        elif isinstance(held, External):
            if held.name == "sys.modules":
                self._module(key, value, place, weak=False)
            elif held.name == "os.environ":
                self._variable(text_of(key), value, place, weak=False)
            elif held.name.endswith(".__dict__"):
                inner = External(held.name.removesuffix(".__dict__"))
                self.set_attribute(inner, text_of(key), value, node, scope)
            elif held.name.startswith(f"{UPSTREAM}.") and "()" not in held.name:
                self._entry(held.name, key, value, place, ast.unparse(node)[:100])

    def _entry(self, name: str, key: Value, value: Value, place: Place, shown: str) -> None:
        value = self.as_it_was(value)
        how: How = "model" if name.endswith("ModelRegistry.models") else "extend"
        self.emit(
            Event(
                how,
                name,
                value,
                place,
                shown=shown,
                kind="entry",
                values=(key,),
                conditions=self.conditions(),
                called=self.called,
            )
        )

    def pairs_of(
        self, leaf: str, args: list[Value], keywords: dict[str, Value]
    ) -> list[tuple[Value, Value]]:
        """Return the entries that `update` or `setdefault` gives a dict.

        What is not known of them has a key that is not known.
        """
        if leaf == "setdefault":
            return [(args[0], args[1])] if len(args) > 1 else []
        found: list[tuple[Value, Value]] = []
        for given in args if leaf == "update" else ():
            if isinstance(given, DictValue):
                found += given.items
            if not isinstance(given, DictValue) or given.more:
                nobody = Unknown("entries that are made at run time", True)
                found.append((nobody, nobody))
        return [*found, *((Const(key), value) for key, value in keywords.items())]

    def _extend(
        self, name: str, leaf: str, args: list[Value], keywords: dict[str, Value], place: Place
    ) -> None:
        owner = name.rpartition(".")[0]
        entries = args[1:2] if leaf == "insert" else args
        dicts = keywords or any(isinstance(given, DictValue) for given in args)
        if (leaf == "update" and dicts) or (leaf == "setdefault" and len(args) > 1):
            for key, value in self.pairs_of(leaf, args, keywords):
                self._entry(owner, key, value, place, f"{owner}.{leaf}(…)")
            return
        several = leaf in ("extend", "update")
        found = self.items_of(entries[0]) if several and entries else entries
        first = args[0] if args else None
        if leaf == "insert" and not (isinstance(first, Const) and first.value == 0):
            leaf = "insert at a place"
        adds = found is not None and leaf in ("append", "add", "insert", "extend", "update")
        kind = "" if adds else leaf
        self.emit(
            Event(
                "extend",
                owner,
                None,
                place,
                shown=f"{name}(…)",
                kind=kind,
                values=tuple(found or ()),
                conditions=self.conditions(),
                called=self.called,
            )
        )

    def _modules(
        self, leaf: str, args: list[Value], keywords: dict[str, Value], place: Place
    ) -> None:
        for key, value in self.pairs_of(leaf, args, keywords):
            self._module(key, value, place, weak=leaf == "setdefault")

    def _module(self, key: Value, value: Value, place: Place, *, weak: bool) -> None:
        name = text_of(key)
        if name is not None and self.is_plugin(name):
            return
        if name is not None and isinstance(value, (Instance, Made)):
            self.stand_ins.append((value, name))
            for part, held in value.attributes.items():
                self._part_of_stand_in(value, part, held, place)
        self.emit(
            Event(
                "module",
                name,
                value,
                place,
                shown="sys.modules",
                conditions=self.conditions(),
                weak=weak,
                called=self.called,
            )
        )

    def _environment(
        self, leaf: str, args: list[Value], keywords: dict[str, Value], place: Place
    ) -> None:
        for key, value in self.pairs_of(leaf, args, keywords):
            self._variable(text_of(key), value, place, weak=leaf == "setdefault")

    def _variable(self, name: str | None, value: Value, place: Place, *, weak: bool) -> None:
        self.emit(
            Event(
                "environment",
                name,
                value,
                place,
                shown="os.environ",
                conditions=self.conditions(),
                weak=weak,
                called=self.called,
            )
        )

    def removed(self, held: Value, name: str | None, place: Place) -> None:
        """List that an attribute is taken away."""
        if isinstance(held, External):
            self.put.pop(f"{held.name}.{name}", None)
            self.leave("unsupported", place, f"removes {held.name}.{name or 'what has some name'}")
        elif isinstance(held, Instance) and name is not None:
            held.attributes.pop(name, None)

    def removed_entry(self, held: Value, key: Value, place: Place) -> None:
        """List that an entry is taken out."""
        if isinstance(held, External) and held.name.startswith(_KEPT):
            shown = text_of(key) or "an entry whose name is made at run time"
            self.leave("unsupported", place, f"takes {shown} out of {held.name}")
        elif isinstance(held, DictValue):
            held.items[:] = [(k, v) for k, v in held.items if not same(k, key)]
        elif isinstance(held, ListValue):
            held.more = True

    def _removes(self, name: str, leaf: str, args: list[Value], place: Place) -> bool:
        """Tell whether a call takes something away, and list it then."""
        if name == "builtins.delattr" and len(args) > 1:
            self.removed(args[0], text_of(args[1]), place)
            return True
        if leaf in ("pop", "clear", "__delitem__") and name.startswith(("sys.modules.", "os.env")):
            key = args[0] if args else Unknown("all of it")
            self.removed_entry(External(name.rpartition(".")[0]), key, place)
            return True
        if name == "os.unsetenv":
            self.removed_entry(External("os.environ"), args[0] if args else Const(None), place)
            return True
        return False

    def _assigned(
        self, target: str | None, value: Value, place: Place, shown: str, kind: str = ""
    ) -> None:
        back = isinstance(value, External) and value.name == target
        value = self.as_it_was(value)
        if back and not isinstance(value, External):
            return  # it gets what it has
        if target is not None and self.called:
            self.changes += 1
            self.put.pop(target, None)
            if not back:
                self.put[target] = (self.changes, value, self.conditions())
        self.emit(
            Event(
                "assign",
                target,
                value,
                place,
                shown=shown,
                kind="back" if back else kind,
                conditions=self.conditions(),
                called=self.called,
            )
        )

    def _part_of_stand_in(self, held: Value, name: str, value: Value, place: Place) -> None:
        """A function of the plugin's that a module made at run time offers is a binding too."""
        if not isinstance(value, (Function, ClassValue)) or value.path is None:
            return
        for module in (m for made, m in self.stand_ins if made is held):
            self._assigned(f"{module}.{name}", value, place, f"{module}.{name}")

    def _import(self, args: list[Value], scope: Scope) -> Value:
        name = text_of(args[0])
        if name is None:
            return Unknown("a module whose name is made at run time", True)
        if name.startswith("."):
            package = text_of(args[1]) if len(args) > 1 else None
            if package is None:
                return Unknown("a module whose name is made at run time", True)
            dots = len(name) - len(name.lstrip("."))
            base = package.split(".")
            kept = base[: len(base) - dots + 1]
            name = ".".join([*kept, name.lstrip(".")]) if name.lstrip(".") else ".".join(kept)
        return self.imported(name)

    def resolved(self, name: str) -> Value:
        """Return what a dotted path leads to, in the plugin or outside."""
        parts = name.split(".")
        found = self.imported(parts[0])
        for part in parts[1:]:
            found = self.attribute(found, part)
        return found

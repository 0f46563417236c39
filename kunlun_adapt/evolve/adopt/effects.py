"""Which calls and assignments of a plugin change upstream."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from kunlun_adapt.evolve.adopt.events import Condition, Event, How, Place
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
    ModuleValue,
    Scope,
    Unknown,
    Value,
    Wrapped,
    text_of,
)

if TYPE_CHECKING:
    from kunlun_adapt.evolve.adopt.sources import Sources

HOOK_TYPES = ("before", "after", "around", "replace")
_TYPE_OF_HOOK = "HookType"
_LISTS = ("append", "extend", "insert", "add", "update", "setdefault", "remove", "clear", "pop")
_SETATTR = (
    "builtins.setattr",
    "builtins.object.__setattr__",
    "builtins.type.__setattr__",
)
_RUNS_TEXT = ("builtins.exec", "builtins.eval", "builtins.compile")
_FINDERS = ("sys.meta_path", "sys.path_hooks")
_PATCHES = ("unittest.mock.patch", "mock.patch")


class Effects(LibraryCalls):
    """Keeps an event for every call or assignment that changes something outside the plugin.

    A registration function may be called as it is, or return a decorator: it waits in `pending`
    until that is known.
    """

    def __init__(self, sources: Sources) -> None:
        super().__init__(sources)
        self.pending: list[tuple[Made, Place, tuple[Condition, ...], bool]] = []
        self.stand_ins: list[tuple[Value, str]] = []
        self.applied: list[tuple[Made, Place, tuple[Condition, ...], bool]] = []

    def call(self, callee: Value, args: list[Value], node: ast.AST, scope: Scope) -> Value:
        """Call a value with positional arguments."""
        raise NotImplementedError

    def external_call(
        self,
        name: str,
        args: list[Value],
        keywords: dict[str, Value],
        node: ast.Call,
        scope: Scope,
    ) -> Value:
        """Return what a call of something outside gives, and keep what it changes."""
        place = self.place(scope, node)
        made = Made(name, args, keywords, place.line)
        upstream = name.partition(".")[0] == UPSTREAM
        leaf = name.rpartition(".")[2]
        if upstream and name.endswith("HookRegistry.register"):
            return self._hook(_bound(("target", "hook", "hook_type"), args, keywords), node, place)
        if upstream and leaf == _TYPE_OF_HOOK and args:
            text = text_of(args[0])
            return External(f"{name}.{text.upper()}") if text else made
        if leaf == "register_oot_forward":
            given = _bound(("op_cls", "fn", "platform_key"), args, keywords)
            self._event("oot", given.get("op_cls"), given.get("fn"), node, place)
            return Const(None)
        if upstream and leaf in _LISTS and "()" not in name:
            self._extend(name, leaf, args, place)
            return made
        if upstream and (leaf.startswith("register") or ".register" in name or self.fills(name)):
            self.pending.append((made, place, self.conditions(), self.called))
            return made
        return self._elsewhere(name, leaf, args, keywords, node, scope) or made

    def _elsewhere(
        self,
        name: str,
        leaf: str,
        args: list[Value],
        keywords: dict[str, Value],
        node: ast.Call,
        scope: Scope,
    ) -> Value | None:
        place = self.place(scope, node)
        if leaf == "__setattr__" and len(args) == 2:
            owner = External(name.rpartition(".")[0])
            self.set_attribute(owner, text_of(args[0]), args[1], node, scope)
            return Const(None)
        if name in _SETATTR and len(args) > 2:
            self.set_attribute(args[0], text_of(args[1]), args[2], node, scope)
            return Const(None)
        if leaf == "find_spec" and args:
            self.probe(text_of(args[0]))
        if name in ("importlib.import_module", "builtins.__import__") and args:
            self.probe(text_of(args[0]))
            return self._import(args, scope)
        if name in ("pkgutil.resolve_name",) and (text := text_of(args[0] if args else None)):
            return self.resolved(text.replace(":", "."))
        if name == "functools.partial" and args:
            return Wrapped("partial", args[0], args[1:], keywords)
        if name in ("sys.modules.setdefault", "sys.modules.update", "sys.modules.__setitem__"):
            self._modules(leaf, args, place)
            return Unknown("a module", True)
        if name == "sys.modules.get" and (text := text_of(args[0] if args else None)):
            return self.imported(text)
        if name in ("os.environ.setdefault", "os.putenv", "os.environ.update"):
            self._environment(leaf, args, keywords, place)
            return Unknown("a text")
        if name == "wrapt.wrap_function_wrapper" and len(args) > 2:
            self._wrapped_by_wrapt(args, node, place)
            return Const(None)
        if name in ("wrapt.register_post_import_hook",) and len(args) > 1:
            if text := text_of(args[1]):
                self.call(args[0], [self.imported(text)], node, scope)
            return Const(None)
        if name in _RUNS_TEXT and leaf != "compile":
            self.leave("unsupported", place, f"{leaf} runs text that is made at run time")
        if name.startswith(_FINDERS):
            self.leave("unsupported", place, "an import finder of its own changes what is imported")
        if name.startswith(_PATCHES):
            self.leave("unsupported", place, f"{ast.unparse(node)[:80]} patches for a while only")
        found = self.library_call(name, args, keywords, scope)
        return self.builtin(name, args, keywords) if found is None else found

    def made_call(self, made: Made, args: list[Value], node: ast.AST, scope: Scope) -> Value:
        """Return what a call of something gives that was made outside: mostly a decorator."""
        first = args[0] if args else None
        if first is None:
            return Unknown("what is returned outside")
        leaf = made.callee.rpartition(".")[2]
        if leaf == "plugin_hook" and made.callee.startswith(f"{UPSTREAM}."):
            named = {"target": "target", "type": "hook_type"}
            bound = _bound(("target", "type"), made.args, made.keywords)
            given = {named.get(key, key): value for key, value in bound.items()}
            self._hook({**given, "hook": first}, node, _of(made, scope, self))
            return first
        if made.callee == "wrapt.patch_function_wrapper" and len(made.args) > 1:
            self._wrapped_by_wrapt(made.args, node, _of(made, scope, self))
            return first
        if made.callee == "wrapt.when_imported":
            if text := text_of(made.args[0] if made.args else None):
                self.call(first, [self.imported(text)], node, scope)
            return first
        for item in self.pending:
            if item[0] is made and item not in self.applied:
                self.applied.append(item)
                self._registered(item[0], first, item[1])
                return first
        return first if isinstance(first, (Function, ClassValue)) else Unknown("made outside")

    def fills(self, name: str) -> bool:
        """Tell whether a function of upstream's, called at the start, fills one of its tables."""
        return False

    def settle(self) -> None:
        """Keep the registrations that were called as they are, with no decorated function."""
        for item in self.pending:
            if item in self.applied:
                continue
            made, place, conditions, called = item
            self.emit(
                Event(
                    "models" if _is_models(made) else "register",
                    made.callee,
                    None,
                    place,
                    values=tuple(made.args),
                    keywords=made.keywords,
                    conditions=conditions,
                    called=called,
                )
            )
        self.pending.clear()

    def _registered(self, made: Made, value: Value, place: Place) -> None:
        self.emit(
            Event(
                "register",
                made.callee,
                value,
                place,
                values=tuple(made.args),
                keywords=made.keywords,
                conditions=self.conditions(),
                called=self.called,
                kind="decorator",
            )
        )

    def _hook(self, given: dict[str, Value], node: ast.AST, place: Place) -> Value:
        kind = given.get("hook_type")
        named = kind.name.rpartition(".")[2].lower() if isinstance(kind, External) else "after"
        known = kind is None or (isinstance(kind, External) and named in HOOK_TYPES)
        target = given.get("target")
        if not known:
            shown = ast.unparse(node)[:100] if isinstance(node, ast.expr) else "a hook"
            self.leave("name", place, f"the type of a hook is made at run time: {shown}")
            named = "around"
        self._event("hook", target, given.get("hook"), node, place, kind=named)
        return Const(None)

    def _event(
        self,
        how: How,
        target: Value | None,
        value: Value | None,
        node: ast.AST,
        place: Place,
        kind: str = "",
    ) -> None:
        self.emit(
            Event(
                how,
                target_of(target),
                value,
                place,
                shown=ast.unparse(node)[:100] if isinstance(node, ast.expr) else "",
                kind=kind,
                conditions=self.conditions(),
                called=self.called,
            )
        )

    def set_attribute(
        self, held: Value, name: str | None, value: Value, node: ast.AST, scope: Scope
    ) -> None:
        """Assign an attribute: of the plugin's own, or of something outside."""
        place = self.place(scope, node)
        shown = ast.unparse(node)[:100]
        if isinstance(held, External):
            if "()" in held.name:
                self._object(held.name, place, shown)
                return
            target = f"{held.name}.{name}" if name is not None else None
            self._assigned(target, value, place, shown)
        elif isinstance(held, Made):
            self._object(held.callee, place, shown)
            if name is not None:
                held.attributes[name] = value
                self._part_of_stand_in(held, name, value, place)
        elif isinstance(held, Unknown):
            if held.upstream:
                self._assigned(None, value, place, shown)
        elif name is None:
            return
        elif isinstance(held, ModuleValue) and held.name in self.scopes:
            self.scopes[held.name].bind(name, value)
        elif isinstance(held, ClassValue):
            held.scope.names[name] = value
        elif isinstance(held, Instance):
            held.attributes[name] = value
            self._part_of_stand_in(held, name, value, place)

    def _part_of_stand_in(self, held: Value, name: str, value: Value, place: Place) -> None:
        """A function of the plugin's that a module made at run time offers is a binding too."""
        if not isinstance(value, (Function, ClassValue)) or value.path is None:
            return
        for module in (m for made, m in self.stand_ins if made is held):
            self._assigned(f"{module}.{name}", value, place, f"{module}.{name}")

    def _object(self, maker: str, place: Place, shown: str) -> None:
        if maker.startswith(f"{UPSTREAM}."):
            self.leave("unsupported", place, f"changes an object that upstream made: {shown}")

    def _assigned(self, target: str | None, value: Value, place: Place, shown: str) -> None:
        self.emit(
            Event(
                "assign",
                target,
                value,
                place,
                shown=shown,
                conditions=self.conditions(),
                called=self.called,
            )
        )

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

    def _extend(self, name: str, leaf: str, args: list[Value], place: Place) -> None:
        owner = name.rpartition(".")[0]
        entries = args[1:2] if leaf == "insert" else args
        if leaf in ("update",) and entries and isinstance(entries[0], DictValue):
            for key, value in entries[0].items:
                self._entry(owner, key, value, place, f"{owner}.update(…)")
            return
        if leaf == "setdefault" and len(args) > 1:
            self._entry(owner, args[0], args[1], place, f"{owner}.setdefault(…)")
            return
        several = leaf in ("extend", "update")
        found = self.items_of(entries[0]) if several and entries else entries
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

    def _modules(self, leaf: str, args: list[Value], place: Place) -> None:
        if leaf == "update":
            entries = args[0].items if args and isinstance(args[0], DictValue) else []
            for key, value in entries:
                self._module(key, value, place, weak=False)
        elif len(args) > 1:
            self._module(args[0], args[1], place, weak=leaf == "setdefault")

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
        if leaf == "update":
            items = args[0].items if args and isinstance(args[0], DictValue) else []
            for key, value in (*items, *((Const(k), v) for k, v in keywords.items())):
                self._variable(text_of(key), value, place, weak=False)
        elif len(args) > 1:
            self._variable(text_of(args[0]), args[1], place, weak=leaf == "setdefault")

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

    def _wrapped_by_wrapt(self, args: list[Value], node: ast.AST, place: Place) -> None:
        module = text_of(args[0]) or (args[0].name if isinstance(args[0], External) else None)
        name = text_of(args[1])
        target = External(f"{module}.{name}") if module and name else Unknown("a name", True)
        wrapper = Unknown("wrapt calls its wrapper as (wrapped, instance, args, kwargs)")
        self._event("hook", target, wrapper, node, place, kind="around")


def target_of(value: Value | None) -> str | None:
    """Return the path that a text or a symbol names."""
    if isinstance(value, External):
        return value.name if "()" not in value.name else None
    return text_of(value)


def _bound(names: tuple[str, ...], args: list[Value], given: dict[str, Value]) -> dict[str, Value]:
    return {**dict(zip(names, args, strict=False)), **given}


def _of(made: Made, scope: Scope, track: Effects) -> Place:
    module = track.sources.modules.get(scope.module)
    return Place(module.file if module else scope.module, made.line)


def _is_models(made: Made) -> bool:
    return made.callee.endswith("ModelRegistry.register")

"""Which calls and assignments of a plugin change upstream."""

from __future__ import annotations

import ast
import sys
from typing import TYPE_CHECKING

from kunlun_adapt.evolve.adopt.entries import Entries
from kunlun_adapt.evolve.adopt.events import Condition, Event, How, Place
from kunlun_adapt.evolve.adopt.expressions import UPSTREAM
from kunlun_adapt.evolve.adopt.values import (
    ClassValue,
    Const,
    External,
    Function,
    Instance,
    Made,
    ModuleValue,
    Scope,
    Unknown,
    Value,
    Wrapped,
    text_of,
)
from kunlun_adapt.plan import WRAPPING

if TYPE_CHECKING:
    from kunlun_adapt.evolve.adopt.sources import Sources

_TYPE_OF_HOOK = "HookType"
_LISTS = ("append", "extend", "insert", "add", "update", "setdefault", "remove", "clear", "pop")
_SETATTR = (
    "builtins.setattr",
    "builtins.object.__setattr__",
    "builtins.type.__setattr__",
)
_RUNS_TEXT = ("builtins.exec", "builtins.eval", "builtins.compile")
_FINDERS = ("sys.meta_path", "sys.path_hooks")
_LIBRARY = ("torch.library.Library()",)
_REGISTERS = ("register", "rename_privateuse1", "define", "impl", "custom_op", "triton_op")
_FILLS = ("add_", "extend_", "set_", "update_")
_ITSELF = ("the parameter self", "the parameter cls")
_PATCHES = ("unittest.mock.patch", "mock.patch")


class Effects(Entries):
    """Keeps an event for every call or assignment that changes something outside the plugin.

    A registration function may be called as it is, or return a decorator: it waits in `pending`
    until that is known.
    """

    def __init__(self, sources: Sources) -> None:
        super().__init__(sources)
        self.pending: list[tuple[Made, Place, tuple[Condition, ...], bool]] = []
        self.stand_ins: list[tuple[Value, str]] = []
        self.applied: list[tuple[Made, Place, tuple[Condition, ...], bool]] = []

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
        upstream = name.partition(".")[0] == UPSTREAM
        leaf = name.rpartition(".")[2]
        if upstream and leaf.startswith(_FILLS):
            name = self.behind(name)
            leaf = name.rpartition(".")[2]
        made = Made(name, args, keywords, place.line)
        if upstream and name.endswith("HookRegistry.register"):
            return self._hook(_bound(("target", "hook", "hook_type"), args, keywords), node, place)
        if upstream and leaf == _TYPE_OF_HOOK and args:
            text = text_of(args[0])
            return External(f"{name}.{text.upper()}") if text else made
        if leaf == "register_oot_forward":
            given = _bound(("op_cls", "fn", "platform_key"), args, keywords)
            self._event("oot", given.get("op_cls"), given.get("fn"), node, place)
            return Const(None)
        if leaf in _LISTS and ".__dict__." in name:
            for key, value in self.pairs_of(leaf, args, keywords):
                owner = External(name.partition(".__dict__.")[0])
                self.set_attribute(owner, text_of(key), value, node, scope)
            return made
        if upstream and leaf in _LISTS and "()" not in name:
            self._extend(name, leaf, args, keywords, place)
            return made
        if upstream and leaf.startswith(_FILLS) and self.is_missing(name):
            shown = ast.unparse(node)[:80]
            self.leave("unsupported", place, f"calls what this release does not have: {shown}")
            return made
        if upstream and ("register" in leaf or ".register" in name or self.fills(name)):
            self.pending.append((made, place, self.conditions(), self.called))
            return made
        if upstream and leaf.startswith(_FILLS) and self.hides_what_it_fills(name):
            shown = ast.unparse(node)[:80]
            self.leave("unsupported", place, f"fills what upstream's text does not show: {shown}")
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
        if leaf == "__setitem__" and len(args) == 2:
            self.set_entry(External(name.rpartition(".")[0]), args[0], args[1], node, scope)
            return Const(None)
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
            self._modules(leaf, args, keywords, place)
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
        if self._removes(name, leaf, args, place):
            return Unknown("what is taken out")
        if name in ("operator.setitem", "builtins.dict.__setitem__") and len(args) > 2:
            self.set_entry(args[0], args[1], args[2], node, scope)
            return Const(None)
        found = self.library_call(name, args, keywords, node, scope)
        found = self.builtin(name, args, keywords) if found is None else found
        if found is None:
            self._handed_on(name, leaf, [*args, *keywords.values()], node, place)
        return found

    def _handed_on(
        self, name: str, leaf: str, given: list[Value], node: ast.Call, place: Place
    ) -> None:
        """List what is registered with, or handed to, something that is not upstream's."""
        root = name.partition(".")[0]
        if root in sys.stdlib_module_names or root == UPSTREAM:
            return
        shown = ast.unparse(node)[:80]
        plain_owner = "()" not in name or name.startswith(_LIBRARY)
        if plain_owner and leaf.lstrip("_").startswith(_REGISTERS):
            self.leave("unsupported", place, f"registers something with {root}: {shown}")
            return
        upstreams = any(
            (isinstance(v, External) and v.name.startswith(f"{UPSTREAM}."))
            or (text_of(v) or "").startswith(f"{UPSTREAM}.")
            for v in given
        )
        if upstreams and any(isinstance(v, (Function, ClassValue)) for v in given):
            self.leave(
                "unsupported", place, f"what {name} does with upstream is not known: {shown}"
            )

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
        if made.callee == "operator.attrgetter" and (text := _text(made.args)):
            for part in text.split("."):
                first = self.attribute(first, part)
            return first
        for item in self.pending:
            if item[0] is made:
                if item not in self.applied:
                    self.applied.append(item)
                self._registered(item[0], first, item[1])
                return first
        return Unknown(f"what {made.callee} makes of it")

    def fills(self, name: str) -> bool:
        """Tell whether a function of upstream's, called at the start, fills one of its tables."""
        return False

    def behind(self, name: str) -> str:
        """Return the path of the method or function of upstream's that a name stands for."""
        return name

    def hides_what_it_fills(self, name: str) -> bool:
        """Tell whether it cannot be seen what a call of upstream's adds to."""
        return False

    def is_missing(self, name: str) -> bool:
        """Tell whether upstream has nothing under a name."""
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
        known = kind is None or (isinstance(kind, External) and named in WRAPPING)
        target = given.get("target")
        if not known:
            shown = ast.unparse(node)[:100] if isinstance(node, ast.expr) else "a hook"
            self.leave("name", place, f"the type of a hook is made at run time: {shown}")
            return Const(None)
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
                self.as_it_was(value) if value is not None else None,
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
            named = "named" if held.name.startswith(f"{UPSTREAM}.") else ""
            self._assigned(target, value, place, shown, named)
        elif isinstance(held, Made):
            self._object(held.callee, place, shown)
            if not held.callee.startswith((f"{UPSTREAM}.", "types.")):
                self._on_something(value, place, shown)
            if name is not None:
                held.attributes[name] = value
                self._part_of_stand_in(held, name, value, place)
        elif isinstance(held, Unknown):
            if held.upstream:
                self._assigned(None, value, place, shown)
            elif held.why not in _ITSELF:
                self._on_something(value, place, shown)
        elif name is None:
            return
        elif isinstance(held, ModuleValue) and held.name in self.scopes:
            self.scopes[held.name].bind(name, value)
        elif isinstance(held, ClassValue):
            held.scope.names[name] = value
        elif isinstance(held, Instance):
            held.attributes[name] = value
            self._part_of_stand_in(held, name, value, place)

    def _on_something(self, value: Value, place: Place, shown: str) -> None:
        """A function of the plugin's is set on what nobody knows: it may well be upstream's."""
        if not isinstance(value, (Function, ClassValue)):
            return
        if self.called:
            self.leave("name", place, f"what it is set on is made at run time: {shown}")
        else:
            self.leave("unreached", place, f"{shown} is assigned by code that nothing here starts")

    def _object(self, maker: str, place: Place, shown: str) -> None:
        if maker.startswith(f"{UPSTREAM}."):
            self.leave("unsupported", place, f"changes an object that upstream made: {shown}")

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


def _text(args: list[Value]) -> str | None:
    return text_of(args[0]) if args else None


def _bound(names: tuple[str, ...], args: list[Value], given: dict[str, Value]) -> dict[str, Value]:
    return {**dict(zip(names, args, strict=False)), **given}


def _of(made: Made, scope: Scope, track: Effects) -> Place:
    module = track.sources.modules.get(scope.module)
    return Place(module.file if module else scope.module, made.line)


def _is_models(made: Made) -> bool:
    return made.callee.endswith("ModelRegistry.register")

"""The hook door's hands: hooks through upstream's HookRegistry, the rest by ourselves."""

from __future__ import annotations

import functools
import inspect
import logging
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from kunlun_adapt.runtime import changes, covering, ledger, roles
from kunlun_adapt.runtime.first_calls import watched_hook
from kunlun_adapt.runtime.references import Patched, holders, repair, resolve, static, tables
from kunlun_adapt.runtime.stop import refuse_failures
from kunlun_adapt.runtime.wrapping import Reader, Replacement, hook_function

logger = logging.getLogger("kunlun_adapt")

_MISSING = object()


@dataclass(slots=True)
class Registered:
    """A hook handed to HookRegistry; `original` is what its target held before it was applied."""

    entry: ledger.Entry
    kind: str
    target: str
    hook: Any
    repair: tuple[str, ...]
    original: Any = _MISSING


class HookInstaller:
    """Takes the calls of the generated `hooks.install`.

    A hook for certain processes is left out of the others; a process that the map does not name
    gets every hook, since nobody can tell what it will run.
    """

    def __init__(self, registry: Any, hook_type: Any) -> None:
        self._role = roles.current() if roles.known() else None
        self._registry = registry
        self._type = hook_type
        self.registered: list[Registered] = []
        self.made: list[changes.Made] = []

    def before(self, id: str, target: str, **how: Any) -> None:
        """Run the implementation before the original; it may return changed mapped arguments."""
        self._wrap("BEFORE", id, target, **how)

    def after(self, id: str, target: str, **how: Any) -> None:
        """Run the implementation after the original; what it returns replaces the result."""
        self._wrap("AFTER", id, target, **how)

    def around(self, id: str, target: str, **how: Any) -> None:
        """Run the implementation in place of the original, which it may call."""
        self._wrap("AROUND", id, target, **how)

    def replace(self, id: str, target: str, **how: Any) -> None:
        """Put the implementation in the place of a function, or our class in that of a class."""
        self._wrap("REPLACE", id, target, **how)

    def set(
        self,
        id: str,
        target: str,
        *,
        value: Any = None,
        repair: tuple[str, ...] = (),
        **how: Any,
    ) -> None:
        """Give an upstream name a value or an object of ours."""
        self._change(
            id, lambda ours: changes.set_value(id, target, _either(ours, value), repair), **how
        )

    def add(self, id: str, target: str, **how: Any) -> None:
        """Give an upstream class or module a member that it lacks."""
        self._change(id, lambda ours: changes.add_member(target, ours), **how)

    def extend(
        self,
        id: str,
        target: str,
        *,
        value: Any = None,
        key: Any = None,
        repair: tuple[str, ...] = (),
        **how: Any,
    ) -> None:
        """Add entries to an upstream list or set, or the one of `key` to a dict.

        What a list holds already is not added again.
        """

        def make(ours: Any) -> Callable[[], str]:
            entry = _either(ours, value)
            if key is not None:
                return changes.put(target, key, entry, repair)
            return changes.extend(target, entry, repair)

        self._change(id, make, **how)

    def register(
        self,
        id: str,
        target: str,
        *,
        decorates: bool,
        readback: tuple[str, Any],
        value: Any = None,
        **how: Any,
    ) -> None:
        """Call one of upstream's own registration functions with the values."""
        self._change(
            id,
            lambda ours: changes.register(
                target, value, None if ours is _MISSING else ours, readback, decorates=decorates
            ),
            **how,
        )

    def _wrap(
        self,
        kind: str,
        id: str,
        target: str,
        *,
        impl: str,
        required: bool,
        read: Reader | None = None,
        positional: tuple[str, ...] = (),
        mapped: Mapping[str, str] | None = None,
        takes_arguments: bool = False,
        process: tuple[str, ...] = (),
        repair: tuple[str, ...] = (),
    ) -> None:
        entry = self._entry(id, required, process)
        ours = self._load(entry, impl)
        if entry is None or ours is _MISSING:
            return
        try:
            if read is not None:
                ours = hook_function(kind, id, ours, read, positional, mapped or {})
            elif not takes_arguments and not isinstance(ours, type):
                raise TypeError(f"{target} is a class, and {impl} is none")
            elif takes_arguments and (isinstance(ours, type) or not callable(ours)):
                raise TypeError(f"{impl} is no function")
            self._registry.register(target, ours, self._type[kind])
        except Exception as error:  # whatever upstream raises belongs in the table
            entry.fail(f"{type(error).__name__}: {error}")
            return
        if target in self._registry._patched:
            entry.fail(
                f"{target} was hooked and applied before our hooks were registered "
                f"({', '.join(self._others(target, ours)) or 'by whom is not known'}); "
                "upstream skips every later hook on it"
            )
        self.registered.append(Registered(entry, kind, target, ours, repair))

    def _change(
        self,
        id: str,
        make: Callable[[Any], Callable[[], str]],
        *,
        required: bool,
        impl: str | None = None,
        process: tuple[str, ...] = (),
    ) -> None:
        entry = self._entry(id, required, process)
        ours = self._load(entry, impl) if impl is not None else _MISSING
        if entry is None or entry.state == "failed":
            return
        try:
            made = changes.Made(entry, make(ours))
        except Exception as error:  # whatever upstream raises belongs in the table
            entry.fail(f"{type(error).__name__}: {error}")
            return
        made.read_back()
        self.made.append(made)

    def _entry(self, id: str, required: bool, process: tuple[str, ...]) -> ledger.Entry | None:
        entry = ledger.enter(id, required)
        if entry.state == "missing":  # warned of, and here after all
            entry.state = "pending"
        if entry.state == "pending":
            entry.detail = ""
        if process and self._role is not None and self._role not in process:
            entry.state, entry.detail = "elsewhere", ledger.for_only(process)
            return None
        return entry

    def _load(self, entry: ledger.Entry | None, impl: str) -> Any:
        """Return the implementation; a process that the hook is not for does not import it."""
        if entry is None:
            return _MISSING
        try:
            return watched_hook(entry.id, pkgutil.resolve_name(impl))
        except (Exception, SystemExit) as error:  # an implementation module may raise anything
            if ledger.LEDGER.refused:
                raise  # our own refusal, of something that the module imported
            entry.fail(f"{impl} cannot be loaded: {type(error).__name__}: {error}")
            return _MISSING

    def before_apply(self) -> None:
        """Note what each target holds, and withdraw the hooks that upstream would apply wrongly."""
        for item in self.registered:
            if item.original is not _MISSING or item.entry.state == "failed":
                continue
            try:
                owner, name = resolve(item.target)
                raw = static(owner, name)
                fault = _unhookable(owner, name, raw, item.hook)
            except Exception as error:  # whatever upstream raises belongs in the table
                fault = f"{type(error).__name__}: {error}"
            if fault:
                item.entry.fail(f"{item.target}: {fault}")
                self._withdraw(item)
                continue
            item.original = _function(raw)
            if isinstance(item.hook, Replacement):
                item.hook.original = item.original

    def read_back(self) -> None:
        """Compare what in-tree code sees with what was registered, and stop on a required miss."""
        patched = []
        for item in self.registered:
            if item.entry.state == "failed":
                continue
            fault = self._fault(item)
            if fault:
                item.entry.fail(fault)
                continue
            item.entry.state = "applied"
            owner, name = resolve(item.target)
            module = owner.__name__ if isinstance(owner, ModuleType) else owner.__module__
            patched.append(Patched(item.entry.id, module, name, item.original))
        for id, places in holders(patched).items():
            ledger.LEDGER.entries[id].fail(
                f"{', '.join(places)} still hold the original; list them in `repair`"
            )
        for id, places in tables(patched).items():
            note = f"{', '.join(places)} hold the original; if upstream reads it there, `repair` it"
            ledger.LEDGER.entries[id].detail = note
            logger.warning("hook %s: %s", id, note)
        for made in self.made:
            made.read_back()
        refuse_failures()

    def _fault(self, item: Registered) -> str:
        """Return why a hook is not in effect, or "" where it is; repairs what the map lists."""
        try:
            owner, name = resolve(item.target)
            held = static(owner, name)
        except Exception as error:  # whatever upstream raises belongs in the table
            return f"{item.target}: {type(error).__name__}: {error}"
        later = self._replaced_by(item)
        if later:
            return f"{item.target} is replaced again, by {later}; upstream lets the last one win"
        inner = _inside(held, item.hook)
        if inner is _MISSING:
            return f"{item.target} is not hooked; see SGLang's log for HookRegistry"
        over = _over(held, item.hook, self.replaces())
        if over:
            return f"{item.target} is replaced at another of its names, by {over}"
        if isinstance(item.hook, Replacement):
            item.hook.original = inner
        faults = [f for p in item.repair if (f := repair(p, item.original, getattr(owner, name)))]
        if isinstance(item.hook, type):
            left = _subclasses(item.original, item.hook)
            if left:
                faults.append(
                    f"{', '.join(left)} were derived from the original before it was replaced; "
                    "list them in `repair`"
                )
        return "; ".join(faults)

    def replaces(self) -> covering.Replaces:
        """Return every `replace` that HookRegistry has been given, but for our own."""
        ours = {id(item.hook) for item in self.registered}
        kind = self._type["REPLACE"]
        return {
            id(h[1]): (target, _plugin(h))
            for target, hooks in list(self._registry._hooks.items())
            for h in list(hooks)
            if h[0] is kind and id(h[1]) not in ours
        }

    def _replaced_by(self, item: Registered) -> str:
        if item.kind != "REPLACE":
            return ""
        kind = self._type["REPLACE"]
        hooks = [h for h in self._registry._hooks.get(item.target, ()) if h[0] is kind]
        return "" if not hooks or hooks[-1][1] is item.hook else _source(hooks[-1])

    def _others(self, target: str, hook: Any) -> list[str]:
        return [_source(h) for h in self._registry._hooks.get(target, ()) if h[1] is not hook]

    def _withdraw(self, item: Registered) -> None:
        hooks = self._registry._hooks.get(item.target, [])
        hooks[:] = [h for h in hooks if h[1] is not item.hook]
        if not hooks:
            self._registry._hooks.pop(item.target, None)


def read_back_after_apply(
    registry: Any,
    installer: HookInstaller,
    kernels: Callable[[covering.Replaces], None] = lambda replaces: None,
    then: Callable[[], None] = lambda: None,
) -> None:
    """Have the read-back run right after upstream's own `apply_hooks()`, and `then` after that.

    `kernels` gets what others replace, which may be one of ours.

    Applying early ourselves would make upstream skip a hook that a later plugin registers on the
    same target.
    """
    original = registry.apply_hooks.__func__

    @functools.wraps(original)
    def apply_hooks(cls: Any) -> Any:
        installer.before_apply()
        result = original(cls)
        kernels(installer.replaces())
        installer.read_back()
        then()
        return result

    registry.apply_hooks = classmethod(apply_hooks)


def _either(ours: Any, value: Any) -> Any:
    return value if ours is _MISSING else ours


def _source(registered: Any) -> str:
    return f"{registered[0].value} of {_plugin(registered)}"


def _plugin(registered: Any) -> str:
    _, hook, source = registered
    package = getattr(source, "dist_name", None) or getattr(source, "plugin_name", None)
    # One of ours has no name of its own.
    what = "" if isinstance(hook, Replacement) else f" ({covering.named(hook)})"
    return f"{package or 'an unknown plugin'}{what}"


def _function(raw: Any) -> Any:
    return raw.__func__ if isinstance(raw, (classmethod, staticmethod)) else raw


def _unhookable(owner: Any, name: str, raw: Any, hook: Any) -> str:
    """Return why HookRegistry must not be let at a target: it would apply the hook, and wrongly."""
    if isinstance(raw, property):
        return "it is a property, which a hook would turn into a method"
    if isinstance(owner, type) and name not in owner.__dict__ and inspect.ismethod(raw):
        return f"{owner.__name__} inherits it; hook it on the class that defines it"
    if isinstance(raw, type) != isinstance(hook, type):
        return f"it is {'a class' if isinstance(raw, type) else 'no class'}, and the hook is not"
    if not callable(_function(raw)):
        return "it cannot be called, and upstream would overwrite every equal value; use `set`"
    return ""


def _subclasses(original: Any, ours: type) -> list[str]:
    """Return the classes derived from a replaced class that know nothing of ours."""
    return [
        f"{cls.__module__}.{cls.__qualname__}"
        for cls in type.__subclasses__(original)
        if not issubclass(cls, ours) and cls not in ours.__mro__
    ]


def _inside(held: Any, hook: Any) -> Any:
    """Return what lies inside `hook` in a chain of HookRegistry's wrappers, `_MISSING` without it.

    A wrapper names what it wraps in `__wrapped__`, and holds its hook in its closure.
    """
    held = _function(held)
    while held is not None:
        if held is hook:
            return None
        inner = getattr(held, "__wrapped__", None)
        if any(covering.content(cell) is hook for cell in getattr(held, "__closure__", None) or ()):
            return inner
        held = inner
    return _MISSING


def _over(held: Any, hook: Any, replaces: covering.Replaces) -> str:
    """Return whose `replace` lies around `hook` in a chain of wrappers, "" where none does."""
    held = _function(held)
    while held is not None and held is not hook:
        inside = [covering.content(cell) for cell in getattr(held, "__closure__", None) or ()]
        if any(one is hook for one in inside):
            return ""
        owner = next((replaces[id(one)][1] for one in inside if id(one) in replaces), "")
        if owner:
            return owner
        held = getattr(held, "__wrapped__", None)
    return ""

"""The hook door's hands: hooks through upstream's HookRegistry, the rest by ourselves."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kunlun_adapt.runtime import ledger
from kunlun_adapt.runtime.call import Call
from kunlun_adapt.runtime.references import resolve
from kunlun_adapt.runtime.stop import refuse_failures

Reader = Callable[..., dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Registered:
    """A hook handed to HookRegistry, waiting to be read back."""

    entry: ledger.Entry
    target: str
    hook: Any


class HookInstaller:
    """Takes the calls of the generated `hooks.install`."""

    def __init__(self, role: str, registry: Any, hook_type: Any) -> None:
        self._role = role
        self._registry = registry
        self._type = hook_type
        self.registered: list[Registered] = []

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
        process: tuple[str, ...] = (),
        repair: tuple[str, ...] = (),
    ) -> None:
        entry = self._entry(id, required, process)
        if entry is None:
            return
        implementation = _load(entry, impl)
        if implementation is None:
            return
        hook = implementation
        if read is not None:
            hook = _hook(kind, id, implementation, read, positional, mapped or {})
        self._registry.register(target, hook, self._type[kind])
        self.registered.append(Registered(entry, target, hook))

    def set(self, id: str, target: str, **how: Any) -> None:
        """Give an upstream name a value or an object of ours."""

        def change(owner: Any, name: str, value: Any) -> bool:
            getattr(owner, name)
            setattr(owner, name, value)
            return getattr(owner, name) is value

        self._change(id, target, change, **how)

    def add(self, id: str, target: str, **how: Any) -> None:
        """Give an upstream class or module a member that it lacks."""

        def change(owner: Any, name: str, value: Any) -> bool:
            if hasattr(owner, name):
                raise AttributeError(f"{target} exists; use `replace` or `around`")
            setattr(owner, name, value)
            return hasattr(owner, name)

        self._change(id, target, change, **how)

    def extend(self, id: str, target: str, **how: Any) -> None:
        """Add entries to an upstream list or set; what is there already is not added again."""

        def change(owner: Any, name: str, value: Any) -> bool:
            held = getattr(owner, name)
            add = held.add if hasattr(held, "add") else held.append
            entries = value if isinstance(value, list) else [value]
            for item in entries:
                if item not in held:
                    add(item)
            return all(item in held for item in entries)

        self._change(id, target, change, **how)

    def register(self, id: str, target: str, *, decorates: bool, **how: Any) -> None:
        """Call one of upstream's own registration functions with the values.

        The implementation, where there is one, is the last argument, or is given to the decorator
        that the function returns.
        """

        def change(owner: Any, name: str, value: Any) -> bool:
            values, implementation = value
            arguments = (
                values if isinstance(values, list) else [v for v in [values] if v is not None]
            )
            function = getattr(owner, name)
            if decorates:
                function(*arguments)(implementation)
            else:
                function(*arguments, *([] if implementation is None else [implementation]))
            return True

        self._change(id, target, change, pair=True, **how)

    def _change(
        self,
        id: str,
        target: str,
        change: Callable[[Any, str, Any], bool],
        *,
        required: bool,
        impl: str | None = None,
        value: Any = None,
        process: tuple[str, ...] = (),
        repair: tuple[str, ...] = (),
        pair: bool = False,
    ) -> None:
        entry = self._entry(id, required, process)
        if entry is None:
            return
        implementation = None
        if impl is not None:
            implementation = _load(entry, impl)
            if implementation is None:
                return
        given = (value, implementation) if pair else (value if impl is None else implementation)
        try:
            owner, name = resolve(target)
            entry.state = "applied" if change(owner, name, given) else "failed"
        except Exception as error:  # whatever upstream raises belongs in the table
            entry.state, entry.detail = "failed", f"{type(error).__name__}: {error}"
            return
        if entry.state == "failed":
            entry.detail = f"{target} does not show the change"

    def _entry(self, id: str, required: bool, process: tuple[str, ...]) -> ledger.Entry | None:
        entry = ledger.enter(id, required)
        if process and self._role not in process:
            entry.state, entry.detail = "elsewhere", f"for {', '.join(process)} only"
            return None
        return entry

    def read_back(self) -> None:
        """Compare what in-tree code sees with what was registered, and stop on a required miss."""
        for item in self.registered:
            try:
                owner, name = resolve(item.target)
                held = owner.__dict__[name] if isinstance(owner, type) else getattr(owner, name)
            except (ImportError, AttributeError, KeyError) as error:
                item.entry.state = "failed"
                item.entry.detail = f"{item.target}: {type(error).__name__}: {error}"
                continue
            item.entry.state = "applied" if _holds(held, item.hook) else "failed"
            if item.entry.state == "failed":
                item.entry.detail = (
                    f"{item.target} is not hooked; see SGLang's log for HookRegistry"
                )
        refuse_failures()


def _load(entry: ledger.Entry, impl: str) -> Any:
    try:
        return pkgutil.resolve_name(impl)
    except Exception as error:  # an implementation module may raise anything
        entry.state = "failed"
        entry.detail = f"{impl} cannot be loaded: {type(error).__name__}: {error}"
        return None


def _hook(
    kind: str,
    id: str,
    implementation: Callable[[Call], Any],
    read: Reader,
    positional: tuple[str, ...],
    mapped: Mapping[str, str],
) -> Callable[..., Any]:
    """Return the function that HookRegistry is given, in the form that `kind` is called in."""

    def make(original: Any, args: Any, kwargs: Any, result: Any = None) -> Call:
        arguments = read(*args, **kwargs)
        return Call(id, original, args, kwargs, arguments, positional, mapped, result)

    def run(call: Call) -> Any:
        try:
            return implementation(call)
        except Exception as error:
            _name_in(error, id)
            raise

    if kind == "AROUND":
        return lambda original, *args, **kwargs: run(make(original, args, kwargs))
    if kind == "AFTER":
        return lambda result, *args, **kwargs: run(make(_no_original(id), args, kwargs, result))
    if kind == "BEFORE":

        def before(*args: Any, **kwargs: Any) -> Any:
            call = make(_no_original(id), args, kwargs)
            changes = run(call)
            return None if changes is None else call.changed(changes)

        return before

    cell: dict[str, Any] = {}

    def replacement(*args: Any, **kwargs: Any) -> Any:
        return run(make(lambda *a, **k: cell["original"](*a, **k), args, kwargs))

    replacement.cell = cell  # type: ignore[attr-defined]  # filled when it is read back
    return replacement


def _name_in(error: Exception, id: str) -> None:
    note = f"raised by the implementation of hook {id!r} (kunlun-adapt explain {id})"
    if hasattr(error, "add_note"):
        error.add_note(note)
    else:
        importlib.import_module("logging").getLogger("kunlun_adapt").error("%s: %s", error, note)


def _no_original(id: str) -> Callable[..., Any]:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise TypeError(f"{id}: only `around` and `replace` hooks may call the original")

    return refuse


def _holds(held: Any, hook: Any) -> bool:
    """Tell whether `held` is the hook, or a chain of HookRegistry's wrappers with it inside."""
    if isinstance(held, (classmethod, staticmethod)):
        held = held.__func__
    while held is not None:
        if held is hook:
            return True
        cells = [c.cell_contents for c in getattr(held, "__closure__", None) or () if _filled(c)]
        inner = getattr(held, "__wrapped__", None)
        if any(c is hook for c in cells):
            cell = getattr(hook, "cell", None)
            if cell is not None:
                cell["original"] = inner
            return True
        held = inner
    return False


def _filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018 -- an empty cell raises
    except ValueError:
        return False
    return True


def read_back_after_apply(registry: Any, installer: HookInstaller) -> None:
    """Have the read-back run right after upstream's own `apply_hooks()`.

    Applying early ourselves would make upstream skip a hook that a later plugin registers on the
    same target.
    """
    original = registry.apply_hooks.__func__

    @functools.wraps(original)
    def apply_hooks(cls: Any) -> Any:
        result = original(cls)
        installer.read_back()
        return result

    registry.apply_hooks = classmethod(apply_hooks)

"""What others have put over what is ours: whether a call still gets there."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MethodType, ModuleType
from typing import Any

from kunlun_adapt.runtime import ledger
from kunlun_adapt.runtime.references import resolve, static

LOOKED_AT = 200
"""Objects that are looked through for ours; a wrapper holds what it wraps within a few."""

Replaces = Mapping[int, tuple[str, str]]
"""What others gave HookRegistry as a `replace`, by identity: its target, and whose it is."""


@dataclass(frozen=True, slots=True)
class Bound:
    """A kernel that is in its place; `held` returns what upstream's code finds there now."""

    entry: ledger.Entry
    place: str
    operator: str
    served: Any
    held: Callable[[], Any]


def read_back(kernels: list[Bound], replaces: Replaces) -> None:
    """Fail each kernel that calls do not reach any more, with both owners' names."""
    for kernel in kernels:
        if kernel.entry.state != "applied":
            continue
        try:
            fault = obstacle(kernel.held(), kernel.served, replaces)
        except Exception as error:  # whatever upstream raises belongs in the table
            fault = f"cannot be read back: {type(error).__name__}: {error}"
        if fault:
            _fail(kernel, kernel.place, fault)
    served = {id(k.served): k for k in kernels if k.entry.state == "applied"}
    for target, owner in replaces.values() if served else ():
        for one in _wrapped_at(target):
            if id(one) in served:
                _fail(served[id(one)], target, f"is replaced by {owner}")
                break


def obstacle(held: Any, ours: Any, replaces: Replaces) -> str:
    """Return what keeps a call of `held` from `ours`, "" where nothing does.

    A wrapper of any kind may stand around ours, but for a `replace`: that one calls what it likes.
    """
    found = ""
    waiting, seen = [held], {id(held)}
    while waiting and len(seen) <= LOOKED_AT:
        one = waiting.pop()
        if one is ours:
            return ""
        inside = list(_contents(one, ours))
        owner = next((replaces[id(o)][1] for o in (one, *inside) if id(o) in replaces), "")
        if owner:
            found = f"is replaced by {owner}"
            continue
        new = [o for o in inside if id(o) not in seen]
        seen.update(map(id, new))
        waiting += new
    if held is None:
        return "holds nothing any more"
    return found or f"holds {named(held)}, from which nothing leads to ours"


def named(value: Any) -> str:
    """Return the name under which a function, or what stands for one, can be found."""
    name = getattr(value, "__qualname__", None) or type(value).__qualname__
    return f"{getattr(value, '__module__', None) or type(value).__module__}.{name}"


def _fail(kernel: Bound, place: str, fault: str) -> None:
    kernel.entry.fail(
        f"{place} {fault}; it is kunlun-adapt's as well, for the operator {kernel.operator}\n"
        "leave one of the two out: SGLANG_PLUGINS says which plugins are loaded, "
        f"KUNLUN_ADAPT_DISABLE={kernel.entry.id} switches ours off"
    )


def _wrapped_at(target: str) -> Iterator[Any]:
    """Yield what a hooked name holds, and what that says it was put around, the outermost first."""
    try:
        owner, name = resolve(target)
        held = static(owner, name)
    except Exception:  # upstream could not apply a hook there either, and has logged it
        return
    for _ in range(LOOKED_AT):
        held = held.__func__ if isinstance(held, (classmethod, staticmethod)) else held
        if held is None:
            return
        yield held
        held = getattr(held, "__wrapped__", None)


def _contents(one: Any, ours: Any) -> Iterator[Any]:
    """Yield the callables that a wrapper can call.

    That a function names another one in `__wrapped__` does not mean that it calls it.
    """
    if isinstance(one, (type, ModuleType)):
        return
    held: list[Any] = []
    if inspect.isfunction(one):
        held += [content(cell) for cell in one.__closure__ or ()]
        held += [*(one.__defaults__ or ()), *(one.__kwdefaults__ or {}).values()]
        # What else it names by `global` is too much to look through.
        held += [ours for n in one.__code__.co_names if one.__globals__.get(n) is ours]
    elif isinstance(one, functools.partial):
        held += [one.func, *one.args, *one.keywords.values()]
    elif isinstance(one, MethodType):
        held += [one.__func__, one.__self__]
    elif isinstance(one, (classmethod, staticmethod)):
        held.append(one.__func__)
    else:
        held += getattr(one, "__dict__", {}).values()
    yield from (o for o in held if callable(o))


def content(cell: Any) -> Any:
    """Return what a cell of a closure holds, None where it is empty."""
    try:
        return cell.cell_contents
    except ValueError:  # an empty cell
        return None

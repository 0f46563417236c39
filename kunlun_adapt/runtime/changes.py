"""Changes that HookRegistry must never make: constants, lists, missing members, registrations."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kunlun_adapt.runtime import ledger
from kunlun_adapt.runtime.references import (
    PLAIN,
    Patched,
    copies,
    holders,
    lookup,
    repair,
    resolve,
    static,
)

logger = logging.getLogger("kunlun_adapt")


@dataclass(frozen=True, slots=True)
class Made:
    """A change that was made, and how to see whether it holds; "" where it does."""

    entry: ledger.Entry
    fault: Callable[[], str]

    def read_back(self) -> None:
        """Look as in-tree code does; what failed once stays failed."""
        if self.entry.state == "failed":
            return
        try:
            fault = self.fault()
        except Exception as error:  # whatever upstream raises belongs in the table
            fault = f"{type(error).__name__}: {error}"
        if fault:
            self.entry.fail(fault)
        else:
            self.entry.state = "applied"


def set_value(id: str, target: str, value: Any, places: tuple[str, ...]) -> Callable[[], str]:
    """Give an upstream name, and the copies at `places`, a value; return the read-back."""
    owner, name = resolve(target)
    old = static(owner, name)
    setattr(owner, name, value)
    faults = [f for place in places if (f := repair(place, old, value))]
    if isinstance(old, PLAIN):
        known = {target, *places}
        left = [place for place in copies(owner, name, old) if place not in known]
        if left:
            logger.warning(
                "%s: %s may be copies of %s and keep %r; list them in `repair` if they matter",
                id,
                ", ".join(left),
                target,
                old,
            )

    def fault() -> str:
        if faults:
            return "; ".join(faults)
        for place in (target, *places):
            if not _shows(place, value):
                return f"{place} does not hold the value"
        patched = Patched(id, getattr(owner, "__name__", ""), name, old)
        held = [p for found in holders([patched]).values() for p in found]
        if held and old is not value:
            return f"{', '.join(held)} still hold the old value; list them in `repair`"
        return ""

    return fault


def add_member(target: str, value: Any) -> Callable[[], str]:
    """Give an upstream class or module a member that it lacks; return the read-back.

    Raises AttributeError where it has it.
    """
    owner, name = resolve(target)
    if hasattr(owner, name):
        raise AttributeError(f"{target} exists; use `replace` or `around`")
    setattr(owner, name, value)
    return lambda: "" if static(*resolve(target)) is value else f"{target} is not the one added"


def extend(target: str, value: Any, places: tuple[str, ...]) -> Callable[[], str]:
    """Add entries to an upstream list or set, and to its copies at `places`; return the read-back.

    What is there already is not added again.
    """
    entries = value if isinstance(value, list) else [value]
    for place in (target, *places):
        held = lookup(place)
        add = held.add if isinstance(held, set) else held.append
        for entry in entries:
            if entry not in held:
                add(entry)

    def fault() -> str:
        for place in (target, *places):
            lacking = [entry for entry in entries if entry not in lookup(place)]
            if lacking:
                return f"{place} lacks {lacking}"
        return ""

    return fault


def put(target: str, key: Any, value: Any, places: tuple[str, ...]) -> Callable[[], str]:
    """Give an upstream dict, and its copies at `places`, an entry; return the read-back."""
    for place in (target, *places):
        lookup(place)[key] = value

    def fault() -> str:
        for place in (target, *places):
            missing = _missing_in(place, lookup(place), key, None)
            if missing or not _same(lookup(place)[key], value):
                return missing or f"{place}[{key!r}] is {lookup(place)[key]!r}, not ours"
        return ""

    return fault


def _same(held: Any, value: Any) -> bool:
    return held is value or (isinstance(value, PLAIN) and bool(held == value))


def register(
    target: str,
    values: Any,
    implementation: Any,
    readback: tuple[str, Any],
    *,
    decorates: bool,
) -> Callable[[], str]:
    """Call one of upstream's own registration functions; return the read-back.

    The implementation, where there is one, is the last argument, or is given to the decorator that
    the function returns. `readback` is the registry that must then hold it, and under which key.
    """
    arguments = values if isinstance(values, list) else [v for v in [values] if v is not None]
    function = lookup(target)
    if decorates:
        function(*arguments)(implementation)
    else:
        function(*arguments, *([] if implementation is None else [implementation]))
    registry, key = readback

    def fault() -> str:
        return _missing_in(registry, lookup(registry), key, implementation)

    return fault


def _shows(path: str, value: Any) -> bool:
    seen = static(*resolve(path))
    return seen is value or (isinstance(value, (*PLAIN, list)) and bool(seen == value))


def _missing_in(path: str, registry: Any, key: Any, implementation: Any) -> str:
    if isinstance(registry, (list, set, tuple, frozenset)):
        wanted = key if implementation is None else implementation
        return "" if any(_leads_to(e, wanted) for e in registry) else f"{path} does not hold it"
    try:
        held = registry[key]
    except (KeyError, TypeError, IndexError):
        return f"{path} has no entry {key!r}"
    if implementation is None or _leads_to(held, implementation):
        return ""
    return f"{path}[{key!r}] is {held!r}, not ours"


def _leads_to(held: Any, wanted: Any) -> bool:
    """Tell whether `held` is the object, or wraps it."""
    while held is not None:
        if held is wanted or (isinstance(wanted, PLAIN) and held == wanted):
            return True
        if isinstance(held, functools.partial):
            held = held.func
        elif isinstance(held, (classmethod, staticmethod)):
            held = held.__func__
        else:
            held = getattr(held, "__wrapped__", None)
    return False

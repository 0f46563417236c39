"""`KUNLUN_ADAPT_DISABLE=id,id`: bindings that are switched off, to find the one at fault.

What is generated stays as it is; the calls by which it hands a binding to the runtime are held
back. A member of the platform class is taken off it again, so that upstream's own default serves.
"""

from __future__ import annotations

import dataclasses
import difflib
import importlib
import logging
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from kunlun_adapt.diagnostics.finding import AdaptError
from kunlun_adapt.runtime import ledger
from kunlun_adapt.runtime.generated import PACKAGE
from kunlun_adapt.runtime.imports import when_imported
from kunlun_adapt.runtime.stop import stop_unexpected

logger = logging.getLogger("kunlun_adapt")

DISABLE = "KUNLUN_ADAPT_DISABLE"
SAID = f"switched off by {DISABLE}"
IDENTITY = "factory/device."
NOT_A_BINDING = ("environment",)
"""What the generated text hands over that has no id."""


@dataclass(slots=True)
class Handed:
    """One binding that the generated text hands over: by which call, and for which member."""

    how: str
    member: str = ""


@dataclass(slots=True)
class Offered:
    """Takes the calls of a generated `install`, to know what there is without doing any of it."""

    bindings: dict[str, Handed] = field(default_factory=dict)

    def __getattr__(self, how: str) -> Callable[..., None]:
        def take(id: str, *args: Any, **how_exactly: Any) -> None:
            if how not in NOT_A_BINDING:
                self.bindings[id] = Handed(how, args[0] if how == "member" else "")

        return take


class Without:
    """Stands before a Binder or a HookInstaller and holds the disabled bindings back."""

    def __init__(self, taker: Any, disabled: frozenset[str]) -> None:
        self._taker = taker
        self._disabled = disabled

    def __getattr__(self, how: str) -> Any:
        take = getattr(self._taker, how)
        if how in NOT_A_BINDING:
            return take

        def hand_over(id: str, *args: Any, **kwargs: Any) -> None:
            if id in self._disabled:
                off = ledger.enter(id, bool(kwargs.get("required", True)))
                off.state, off.detail = "disabled", SAID
                return
            take(id, *args, **kwargs)
            entry = ledger.LEDGER.entries.get(id)
            if entry is not None:  # what is no binding is handed over all the same
                entry.member = args[0] if how == "member" else ""
                entry.kept = _kept(id, Handed(how, entry.member), [])

        return hand_over


def disabled(bindings: ModuleType) -> frozenset[str]:
    """Return the ids that are switched off in this process, and take members off the platform.

    Says so as a warning. Raises AdaptError for an id that is none, and for a binding that cannot be
    switched off.
    """
    asked = _asked()
    if not asked:
        return frozenset()
    offered = Offered()
    bindings.install(offered)
    importlib.import_module(f"{PACKAGE}.hooks").install(offered)
    known = offered.bindings
    _check_known([id for id in asked if id not in known], known)
    off = [id for id in asked if id in known]
    members = {i: h.member for i, h in known.items() if h.how == "member"}
    for id in off:
        shared = [i for i, m in members.items() if m == members.get(id) and i not in off]
        kept = _kept(id, known[id], shared)
        if kept:
            raise AdaptError(f"{DISABLE}: {id} cannot be switched off: {kept}", f"leave out {id}")
    if off:
        logger.warning(
            "%s: %d binding(s) are switched off in this process, and nothing stands in for them: "
            "%s",
            DISABLE,
            len(off),
            ", ".join(off),
        )
    names = list(dict.fromkeys(members[id] for id in off if id in members))
    if names:
        platform = str(bindings.PLATFORM)
        module, _, name = platform.partition(":")
        when_imported(module, lambda made: _take_off(getattr(made, name), names))
    return frozenset(off)


def _asked() -> list[str]:
    given = os.environ.get(DISABLE, "")
    return list(dict.fromkeys(id.strip() for id in given.split(",") if id.strip()))


def _kept(id: str, handed: Handed, shared: Iterable[str]) -> str:
    """Return why a binding cannot be switched off, "" where it can."""
    if handed.how == "own":
        return "our own classes call it; switch off what hands the class out"
    if id.startswith(IDENTITY):
        return "SGLang knows the device by it"
    together = list(shared)
    if together:
        return f"{handed.member} serves {', '.join(together)} as well; switch those off with it"
    return ""


def _check_known(unknown: list[str], known: Iterable[str]) -> None:
    """Raise AdaptError for ids that are none; say which of them are off in this release anyway."""
    if not unknown:
        return
    idle = _not_bound_here()
    for id in unknown:
        if id in idle:
            logger.warning(
                "%s: %s is not bound here and needs no switching off: %s", DISABLE, id, idle[id]
            )
            continue
        near = difflib.get_close_matches(id, [*known, *idle], n=3, cutoff=0.5)
        raise AdaptError(
            f"{DISABLE}: there is no binding {id!r}",
            f"did you mean {' or '.join(near)}?" if near else "kunlun-adapt list bindings",
        )


def _not_bound_here() -> dict[str, str]:
    """Return the map's bindings that this release and profile do without, and why. Slow."""
    from pathlib import Path

    from kunlun_adapt.documents import load_catalog
    from kunlun_adapt.plan import make_plan
    from kunlun_adapt.upstream import Lock, LockFacts

    record = ledger.LEDGER
    facts = LockFacts(Lock(), record.release)
    plan = make_plan(load_catalog(Path(record.workspace)), facts, record.profile)
    return {
        b.id: f"{b.status}{f' ({b.status_why})' if b.status_why else ''}"
        for b in plan.bindings
        if b.status != "bound"
    }


def _take_off(platform: Any, names: list[str]) -> None:
    """Remove members from our platform class, so that those of upstream's class serve again."""
    try:
        for name in names:
            first, _, flag = name.partition(".")
            if flag:
                setattr(platform, first, _reset(getattr(platform, first), flag))
            else:
                delattr(platform, first)
    except Exception as error:  # upstream would log it and choose another platform
        raise stop_unexpected(error, "a binding cannot be switched off") from error


def _reset(flags: Any, name: str) -> Any:
    """Return upstream's flags with one of them at its default."""
    default = getattr(type(flags)(), name)
    if dataclasses.is_dataclass(flags) and not isinstance(flags, type):
        return dataclasses.replace(flags, **{name: default})
    fields = {n: getattr(flags, n) for n in type(flags).__struct_fields__}
    return type(flags)(**{**fields, name: default})

"""Whether an entry, as it is or as it is to be, holds in a release; and what it is about there."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pydantic import ValidationError

from kunlun_adapt.check import Context
from kunlun_adapt.check.parameters import GRID, named, place_of
from kunlun_adapt.check.parameters import Place as CallPlace
from kunlun_adapt.check.platform_body import capabilities_class, stated_capabilities
from kunlun_adapt.check.processes import loads_plugins
from kunlun_adapt.diagnostics.mend import Path
from kunlun_adapt.documents import Bind, HookAt, Spelling
from kunlun_adapt.plan import (
    PLATFORM,
    PROCESS,
    HookBinding,
    KernelBinding,
    forward_called,
    spelled,
)
from kunlun_adapt.upstream import Missing, Symbol

Item = HookBinding | KernelBinding
Place = tuple[str, int, Path]
"""A file, which of its documents, and the path of an entry in it."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One ranged entry: what it is of, and what the document states of it."""

    place: Place
    item: Item | None
    key: str | None
    stated: Mapping[str, Any]

    def with_values(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return what is stated with some values set; None takes a key away."""
        whole = {**self.stated, **values}
        return {k: v for k, v in whole.items() if v is not None or k not in values}


def holds(context: Context, entry: Entry, stated: Mapping[str, Any]) -> bool:
    """Tell whether an entry that states this would hold in the release of the context."""
    try:
        if entry.item is not None:
            return _item_holds(context, entry.item, stated)
        return _spelling_holds(context, entry.key or "", Spelling.model_validate(dict(stated)))
    except ValidationError:
        return False


def fitted(context: Context, entry: Entry, stated: Mapping[str, Any]) -> dict[str, Any]:
    """Return what an entry states without the ignored names that the call does not have there."""
    ignores = stated.get("ignores")
    place = None
    if ignores and entry.item is not None:
        with contextlib.suppress(ValidationError):
            place = _place(context, entry.item, stated)[1]
    if place is None or not ignores:
        return dict(stated)
    known = place.signature.names
    if isinstance(ignores, Mapping):
        kept: Any = {name: value for name, value in ignores.items() if name in known}
    else:
        kept = [name for name in ignores if name in known]
    return {**stated, "ignores": kept or None}


def symbol_of(context: Context, entry: Entry, stated: Mapping[str, Any]) -> Symbol | None:
    """Return what an entry is about in the release of the context."""
    if entry.item is not None:
        found = context.facts.resolve(_asked(entry.item, str(stated.get("target"))))
    else:
        spelling = Spelling.model_validate(dict(stated))
        path = spelling.call or _member_path(context, spelling)
        if path is None:
            return None
        found = context.facts.resolve(path)
    return found if isinstance(found, Symbol) else None


def _asked(item: Item, target: str) -> str:
    # What is added must not be there; what has to exist is what it is added to.
    adds = isinstance(item, HookBinding) and item.hook.type == "add"
    return target.rpartition(".")[0] if adds else target


def _place(
    context: Context, item: Item, stated: Mapping[str, Any]
) -> tuple[Symbol | Missing, CallPlace | None]:
    """Return what an item that states this is about there, and where its call is read."""
    facts, whole = context.facts, {k: v for k, v in stated.items() if v is not None}
    if isinstance(item, HookBinding):
        at = HookAt.model_validate(whole)
        symbol = facts.resolve(_asked(item, at.target))
        return symbol, place_of(replace(item, at=at, symbol=symbol), symbol)
    bind = Bind.model_validate(whole)
    symbol = facts.resolve(bind.target)
    outer = bind.style == "oot_forward"
    call = forward_called(facts, bind.target) if outer else symbol
    return symbol, place_of(replace(item, bind=bind, symbol=symbol), call)


def _item_holds(context: Context, item: Item, stated: Mapping[str, Any]) -> bool:
    symbol, place = _place(context, item, stated)
    shown = stated.get("readback")
    if shown and not isinstance(context.facts.resolve(str(shown.get("target"))), Symbol):
        return False
    kind = item.symbol.kind if isinstance(item.symbol, Symbol) else None
    if not isinstance(symbol, Symbol):
        return False
    if kind is not None and (kind == "class") != (symbol.kind == "class"):
        return False
    if place is None:
        return True
    return not place.free() and not named(place.at) - {*place.signature.names, GRID}


def _spelling_holds(context: Context, key: str, spelling: Spelling) -> bool:
    path = spelling.call or _member_path(context, spelling)
    if path is None or not isinstance(context.facts.resolve(path), Symbol):
        return False
    if not key.startswith(f"{PROCESS}."):
        return True
    loads = loads_plugins(context, key.removeprefix(f"{PROCESS}."))
    return loads is None or loads is spelling.loads_plugins


def _member_path(context: Context, spelling: Spelling) -> str | None:
    """Return the upstream path of a member of the platform class or of its capabilities."""
    name = spelling.method or spelling.field or ""
    owner, _, leaf = name.rpartition(".")
    if owner:
        klass = stated_capabilities(context) or capabilities_class(context)
        return klass and f"{klass}.{leaf}"
    whose = spelled(context.map, PLATFORM, context.release, context.beyond_claims)
    return None if whose is None or whose.call is None else f"{whose.call}.{name}"

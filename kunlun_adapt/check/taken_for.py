"""Whether a place may be what a lost symbol was: by its kind, and by a body that says enough."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from kunlun_adapt.check.context import Context
from kunlun_adapt.check.kinds import CALLABLE, FUNCTIONS, VALUES
from kunlun_adapt.plan import WRAPPING
from kunlun_adapt.upstream import Symbol
from kunlun_adapt.upstream.body_text import without_docstring
from kunlun_adapt.upstream.found import Found

SMALL = 40
"""A body of fewer nodes than this is as another one by chance."""
LONG = 60
"""So is a value with a shorter text."""
CALLED = "called"
ANYTHING = frozenset({"external", "lazy"})


def sort_of(kind: str) -> str:
    """Return what a kind is for who names it: something called, a class, a value or its own."""
    if kind == "class":
        return kind
    if kind in (*CALLABLE, *FUNCTIONS):
        return CALLED
    return "value" if kind in VALUES else kind


def sorts_of_hook(type: str) -> tuple[str, ...]:
    """Return what a hook of a type can be about; nothing where it can be about anything."""
    if type in (*WRAPPING, "register"):
        return (CALLED, "class")
    return {"extend": ("value",), "add": ("class", "module")}.get(type, ())


def is_of_its_kind(context: Context, lost: str, place: str, sorts: tuple[str, ...]) -> bool:
    """Tell whether a place is of the kind that the lost symbol had.

    The lock knows what it was; without it, what binds it says what it can have been. A value or a
    class of a function's name is not the function.
    """
    found = context.facts.resolve(place)
    if not isinstance(found, Symbol):
        return True
    known = next(_locked_kinds(context, lost), None)
    wanted = sorts if known is None else (sort_of(known),)
    here = sort_of(found.kind)
    # What another distribution has, or code that runs at import makes, can be of any kind.
    return not wanted or here in wanted or not ANYTHING.isdisjoint((here, *wanted))


def _locked_kinds(context: Context, path: str) -> Iterator[str]:
    if context.lock is not None:
        for release in reversed(context.lock.releases):
            symbol = context.lock.symbol(release, path)
            if symbol is not None:
                yield symbol.kind


def is_telling(context: Context, path: str) -> bool:
    """Tell whether a body is large enough that another one is not the same by chance."""
    symbol = context.facts.resolve(path)
    if not isinstance(symbol, Symbol) or context.reader is None:
        return False
    if sort_of(symbol.kind) == "value":
        return len(symbol.value or "") >= LONG
    found = context.reader.find(path)
    if not isinstance(found, Found) or found.table is None or found.binding is None:
        return False
    body = without_docstring(getattr(found.table.node(found.binding), "body", []))
    return sum(1 for part in body for _ in ast.walk(part)) >= SMALL

"""KA116: what a binding depends on without binding it changed: watched by name, or found."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from packaging.version import Version

from kunlun_adapt.check.context import Context
from kunlun_adapt.check.drift import changes, last_seen
from kunlun_adapt.check.moves import places_now
from kunlun_adapt.check.neighbours import neighbour_changes
from kunlun_adapt.check.targets import bound, nearest, suggested
from kunlun_adapt.check.usage import usage_now
from kunlun_adapt.check.watched import Watched, watched
from kunlun_adapt.diagnostics import Finding
from kunlun_adapt.upstream import Missing, Symbol

SHOWN = 4


def rule(context: Context) -> Iterable[Finding]:
    """Compare every watched function with the lock: this release, or the last one before it."""
    if context.reader is None:
        return
    for item in watched(context):
        if isinstance(item.symbol, Missing):
            yield _gone(context, item, item.symbol)
            continue
        seen = last_seen(context, item.path)
        changed = changes(seen[1], item.symbol) if seen else []
        if seen and changed:
            yield _changed(context, item, item.symbol, seen[0], changed)
    yield from _neighbours(context)


def _neighbours(context: Context) -> Iterable[Finding]:
    """Compare what calls each binding's target, and what that calls, with the lock."""
    if context.lock is None or not any("bindings" in u for u in context.lock.usage.values()):
        return
    rows = usage_now(context).get("bindings", {})
    told: set[str] = set()
    for item in bound(context):
        id = item.binding.binding.id
        seen = None if id in told or id not in rows else _last_row(context, id)
        changed = neighbour_changes(seen[1], rows[id]) if seen else []
        if seen and changed:
            told.add(id)
            yield Finding.of(
                "KA116",
                f"how upstream uses {item.at.target} is not what it was when {seen[0]} was locked: "
                f"{_few(changed)}",
                item.position,
                binding=id,
                target=item.at.target,
                upstream=item.symbol.location,
                suggestion=f"see whether {id} still holds, then run {context.lock_command()}",
            )


def _last_row(context: Context, id: str) -> tuple[str, Mapping[str, Any]] | None:
    """The locked release to compare with, as for symbols, and the row of a binding there."""
    assert context.lock is not None
    for release in reversed(context.lock.releases):
        row = context.lock.usage.get(release, {}).get("bindings", {}).get(id)
        if row is not None and Version(release) <= Version(context.release):
            return release, row
    return None


def _few(changed: list[str]) -> str:
    more = len(changed) - SHOWN
    return "; ".join([*changed[:SHOWN], *([f"and {more} more"] if more > 0 else [])])


def _gone(context: Context, item: Watched, symbol: Missing) -> Finding:
    missing = suggested(context, symbol)
    return Finding.of(
        "KA116",
        f"sglang {context.release} has no {item.path}, which {item.binding} watches",
        item.position,
        binding=item.binding,
        target=item.path,
        upstream=nearest(context, missing),
        suggestion=places_now(missing)
        or f"see what became of it, and whether {item.binding} still holds",
    )


def _changed(
    context: Context, item: Watched, symbol: Symbol, release: str, changed: list[str]
) -> Finding:
    return Finding.of(
        "KA116",
        f"{item.path}, which {item.binding} watches, is not what it was when {release} was "
        f"locked: {'; '.join(changed)}",
        item.position,
        binding=item.binding,
        target=item.path,
        upstream=symbol.location,
        suggestion=f"see whether {item.binding} still holds, then run {context.lock_command()}",
    )

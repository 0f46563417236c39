"""KA116: an upstream function that a binding watches changed or is gone."""

from __future__ import annotations

from collections.abc import Iterable

from kunlun_adapt.check.context import Context
from kunlun_adapt.check.drift import changes, last_seen
from kunlun_adapt.check.moves import places_now
from kunlun_adapt.check.targets import nearest, suggested
from kunlun_adapt.check.watched import Watched, watched
from kunlun_adapt.diagnostics import Finding
from kunlun_adapt.upstream import Missing, Symbol


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

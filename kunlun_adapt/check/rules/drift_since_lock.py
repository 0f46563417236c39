"""KA106: the symbol differs from what the lock verified."""

from __future__ import annotations

from collections.abc import Iterable

from kunlun_adapt.check.context import Context
from kunlun_adapt.check.drift import changes
from kunlun_adapt.check.locked import locked_uses
from kunlun_adapt.diagnostics import Finding


def rule(context: Context) -> Iterable[Finding]:
    """Compare each bound symbol with the lock: where it is, its kind, signature and body."""
    if context.lock is None or context.reader is None:
        return
    for use in locked_uses(context):
        held = context.lock.symbol(context.release, use.path)
        if held is None:
            continue
        changed = changes(held, use.symbol)
        if changed:
            yield Finding.of(
                "KA106",
                f"{use.path} is not what the lock verified: {'; '.join(changed)}",
                use.position,
                binding=use.binding,
                target=use.path,
                upstream=use.symbol.location,
                suggestion=f"look at the change, then run {context.lock_command()}",
            )

"""KA106: the symbol differs from what the lock verified."""

from __future__ import annotations

from collections.abc import Iterable

from kunlun_adapt.check.context import Context
from kunlun_adapt.check.locked import locked_uses
from kunlun_adapt.diagnostics import Finding
from kunlun_adapt.upstream import Symbol


def rule(context: Context) -> Iterable[Finding]:
    """Compare each bound symbol with the lock: where it is, its kind, signature and body."""
    if context.lock is None or context.reader is None:
        return
    for use in locked_uses(context):
        held = context.lock.symbol(context.release, use.path)
        if held is None:
            continue
        changes = _changes(held, use.symbol)
        if changes:
            yield Finding.of(
                "KA106",
                f"{use.path} is not what the lock verified: {'; '.join(changes)}",
                use.position,
                binding=use.binding,
                target=use.path,
                upstream=use.symbol.location,
                suggestion="look at the change, then run kunlun-adapt lock "
                f"--sglang {context.release}",
            )


def _changes(held: Symbol, now: Symbol) -> list[str]:
    found = []
    if held.resolved != now.resolved:
        found.append(f"defined in {now.resolved}, was {held.resolved}")
    if held.kind != now.kind:
        found.append(f"kind {now.kind}, was {held.kind}")
    was = held.signature.text() if held.signature else "none"
    text = now.signature.text() if now.signature else "none"
    if was != text:
        found.append(f"signature {text}, was {was}")
    if held.fingerprint != now.fingerprint:
        found.append("its body changed")
    return found

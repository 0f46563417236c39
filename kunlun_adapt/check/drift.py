"""How a symbol differs from what the lock holds of it."""

from __future__ import annotations

from packaging.version import Version

from kunlun_adapt.check.context import Context
from kunlun_adapt.upstream import Symbol


def changes(held: Symbol, now: Symbol) -> list[str]:
    """Return what is not as it was, in words."""
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


def last_seen(context: Context, path: str) -> tuple[str, Symbol] | None:
    """Return the locked release that is to be compared with, and the symbol there.

    That is this release where the lock holds the path in it, else the newest one before it.
    """
    if context.lock is None:
        return None
    for release in reversed(context.lock.releases):
        symbol = context.lock.symbol(release, path)
        if symbol is not None and Version(release) <= Version(context.release):
            return release, symbol
    return None

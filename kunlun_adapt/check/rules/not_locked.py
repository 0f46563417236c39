"""KA107: the lock holds nothing for this binding and release."""

from __future__ import annotations

from collections.abc import Iterable

from kunlun_adapt.check.context import Context
from kunlun_adapt.check.locked import locked_uses, watched_uses
from kunlun_adapt.diagnostics import Finding
from kunlun_adapt.documents import in_range


def rule(context: Context) -> Iterable[Finding]:
    """Report a release that is not locked (once), or the bound targets that are not."""
    if context.lock is None or context.reader is None:
        return
    command = f"run {context.lock_command()}"
    if context.release not in context.lock.releases:
        if context.claimed:
            message = f"sglang {context.release} is not in adapt.lock"
            yield Finding.of("KA107", message, context.document.at("sglang"), suggestion=command)
        return
    unclaimed = _unclaimed(context)
    for use in (*locked_uses(context), *watched_uses(context)):
        if use.binding in unclaimed:
            continue
        if context.lock.symbol(context.release, use.path) is None:
            yield Finding.of(
                "KA107",
                f"adapt.lock holds nothing for {use.path} in sglang {context.release}",
                use.position,
                binding=use.binding,
                target=use.path,
                upstream=use.symbol.location,
                suggestion=command,
            )


def _unclaimed(context: Context) -> set[str]:
    """Return the bindings that are only here beyond their claims: the lock owes them nothing."""
    return {
        binding.id
        for plan in context.plans
        for binding in plan.bindings
        if not any(in_range(claim, context.release) for claim in binding.claims.split(" | "))
    }

"""KA310: calls that two tiers would serve, where their ranges cross."""

from __future__ import annotations

from collections.abc import Iterable

from kunlun_adapt.check.context import Context
from kunlun_adapt.check.rules.tier_gap import shown
from kunlun_adapt.check.tables import analysed, binding_of
from kunlun_adapt.diagnostics import Finding
from kunlun_adapt.plan.overlaps import overlaps


def rule(context: Context) -> Iterable[Finding]:
    """Report two tiers that each take some values of one subject and share others.

    A tier above a wider one is the ordinary ladder, and a fallback takes what is left: neither is
    meant.
    """
    for item in analysed(context):
        if item.table is None or item.analysis is None:
            continue
        model = item.recipe.model
        names = [tier.name for tier in model.kernels]
        quiet = frozenset(t.name for t in model.kernels if t.fallback)
        for found in overlaps(item.table, quiet | set(item.analysis.unreachable)):
            index = names.index(found.lower)
            yield Finding.of(
                "KA310",
                f"the tiers {found.upper!r} and {found.lower!r} of {model.name} both take "
                f"{found.subject} = {shown(found.value)}; {found.upper!r} is first and serves it",
                item.recipe.at("kernels", index, "when", found.subject),
                binding=binding_of(context, item.recipe),
                suggestion=f"let one of the two end where the other begins, if {found.lower!r} was "
                "meant to serve such calls",
            )

"""KA312: a fallback that takes the weights in another layout."""

from __future__ import annotations

from collections.abc import Iterable

from kunlun_adapt.check.context import Context
from kunlun_adapt.check.tables import analysed, binding_of
from kunlun_adapt.diagnostics import Finding
from kunlun_adapt.plan import Condition, TierTable
from kunlun_adapt.plan.tiers import axis_of

UPSTREAMS = "upstream loads them"


def rule(context: Context) -> Iterable[Finding]:
    """Report fallbacks that calls reach although a tier above had the weights laid out otherwise.

    Weights are laid out once, when they are loaded. A tier that says nothing of `weights` takes
    them as upstream loads them.
    """
    for item in analysed(context):
        if item.table is None or item.analysis is None:
            continue
        kernels = item.recipe.model.kernels
        tiers = dict(item.table.tiers)
        for index, tier in enumerate(kernels):
            if not tier.fallback or tier.name in item.analysis.unreachable:
                continue
            for above in kernels[:index]:
                if above.weights == tier.weights or _settled(
                    item.table, tiers[above.name], tiers[tier.name]
                ):
                    continue
                wanted = tier.weights or UPSTREAMS
                key = "weights" if tier.weights else "name"
                yield Finding.of(
                    "KA312",
                    f"the fallback {tier.name!r} takes the weights as {wanted}, and "
                    f"{above.name!r} above it had them laid out as {above.weights or UPSTREAMS}",
                    item.recipe.at("kernels", index, key),
                    binding=binding_of(context, item.recipe),
                    suggestion=f"give the fallback the layout `weights: {above.weights}`, or let a "
                    "setting (env., server. or op.) decide between the two for good"
                    if above.weights
                    else f"let it take the weights as upstream loads them, or give {above.name!r} "
                    f"`weights: {tier.weights}` too",
                )
                break


def _settled(table: TierTable, above: tuple[Condition, ...], below: tuple[Condition, ...]) -> bool:
    """Tell whether a setting keeps the two apart: it is one when weights load and at each call."""
    tests = {c.subject.text: c for c in below if c.subject.scope != "call"}
    for condition in above:
        other = tests.get(condition.subject.text)
        if other is not None:
            values = axis_of(table, condition.subject).values
            if not any(condition.test.holds(v) and other.test.holds(v) for v in values):
                return True
    return False

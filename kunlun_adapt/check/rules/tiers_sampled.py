"""KA308: tiers whose kinds of call are too many to try them all."""

from __future__ import annotations

from collections.abc import Iterable

from kunlun_adapt.check.context import Context
from kunlun_adapt.check.tables import analysed, binding_of
from kunlun_adapt.diagnostics import Finding
from kunlun_adapt.plan.tiers import MAX_CELLS


def rule(context: Context) -> Iterable[Finding]:
    """Say which operators were only sampled, so that silence is not taken for proof."""
    for item in analysed(context):
        if item.analysis is not None and not item.analysis.exact:
            yield Finding.of(
                "KA308",
                f"the tiers of {item.recipe.model.name} tell more than {MAX_CELLS:,} kinds of call "
                "apart: a sample was tried, gaps may be missed, unreachable tiers are",
                item.recipe.key_at("kernels"),
                binding=binding_of(context, item.recipe),
                suggestion="read fewer things in `when`, or split the operator",
            )

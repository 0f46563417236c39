"""KA305: a tier that no call can reach."""

from __future__ import annotations

from collections.abc import Iterable

from kunlun_adapt.check.context import Context
from kunlun_adapt.check.tables import analysed, binding_of
from kunlun_adapt.diagnostics import Finding


def rule(context: Context) -> Iterable[Finding]:
    """Report tiers whose calls are all served by the tiers above them, or that hold for none."""
    for item in analysed(context):
        names = [tier.name for tier in item.recipe.model.kernels]
        for name in item.analysis.unreachable if item.analysis else ():
            index = names.index(name)
            above = ", ".join(names[:index])
            why = f"{above} take every call before it" if index else "its condition holds for none"
            yield Finding.of(
                "KA305",
                f"no call of {item.recipe.model.name} reaches the tier {name!r}: {why}",
                item.recipe.at("kernels", index, "name"),
                binding=binding_of(context, item.recipe),
                suggestion="move it up, narrow a tier above it, or remove it",
            )

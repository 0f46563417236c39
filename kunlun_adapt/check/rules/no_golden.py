"""KA309: an operator without a golden."""

from __future__ import annotations

from collections.abc import Iterable

from kunlun_adapt.check.context import Context
from kunlun_adapt.check.tables import binding_of
from kunlun_adapt.diagnostics import Finding


def rule(context: Context) -> Iterable[Finding]:
    """Report implemented operators that nothing says the right answer of."""
    for recipe in context.active_operators:
        if recipe.model.golden is None:
            yield Finding.of(
                "KA309",
                f"{recipe.model.name} has no golden: its kernels have nothing to be compared with, "
                "and a call that none of them takes has no last resort",
                recipe.at("name"),
                binding=binding_of(context, recipe),
                suggestion='add `golden: "package.module:function"`, the operation in plain '
                "PyTorch, or `status: planned` while it is to come",
            )

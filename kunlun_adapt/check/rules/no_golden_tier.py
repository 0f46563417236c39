"""KA306: an operator whose last resort is not the golden."""

from __future__ import annotations

from collections.abc import Iterable

from kunlun_adapt.check.context import Context
from kunlun_adapt.check.tables import binding_of
from kunlun_adapt.diagnostics import Finding
from kunlun_adapt.documents import GOLDEN


def rule(context: Context) -> Iterable[Finding]:
    """Report operators without a golden tier at the end, or whose golden is no fallback."""
    for recipe in context.active_operators:
        index = len(recipe.model.kernels) - 1
        last = recipe.model.kernels[index]
        if last.name == GOLDEN and last.fallback:
            continue
        if last.name == GOLDEN:
            message = f"the golden tier of {recipe.model.name} is not marked as the fallback it is"
            tip = "add `fallback: true`"
        else:
            message = f"the last tier of {recipe.model.name} is {last.name!r}, not the golden"
            tip = "end with `- {name: golden, fallback: true}`"
        yield Finding.of(
            "KA306",
            message,
            recipe.at("kernels", index, "name"),
            binding=binding_of(context, recipe),
            suggestion=tip,
        )

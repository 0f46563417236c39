"""KA303: a declared call that no tier serves."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kunlun_adapt.check.context import Context
from kunlun_adapt.check.tables import analysed, binding_of
from kunlun_adapt.diagnostics import Finding
from kunlun_adapt.documents import GOLDEN
from kunlun_adapt.plan.tiers import GIVEN, OTHER


def rule(context: Context) -> Iterable[Finding]:
    """Report operators for which some call inside the declared axes is refused at run time."""
    for item in analysed(context):
        analysis = item.analysis
        if analysis is None or analysis.example is None:
            continue
        model = item.recipe.model
        call = ", ".join(f"{k} = {shown(v)}" for k, v in analysis.example.items())
        golden = next((i for i, t in enumerate(model.kernels) if t.name == GOLDEN), None)
        share = f"{analysis.gaps} of {analysis.cells} kinds of call"
        yield Finding.of(
            "KA303",
            f"no tier of {model.name} serves {call} ({share})",
            item.recipe.key_at("kernels"),
            binding=binding_of(context, item.recipe),
            suggestion="end with a tier that takes the rest: `- {name: golden, fallback: true}`"
            if golden is None
            else f"widen `when` of the golden tier, line {_line(context, item, golden)}",
        )


def _line(context: Context, item: Any, index: int) -> int:
    return int(item.recipe.at("kernels", index).line)


def shown(value: Any) -> str:
    """Return a value of the grid as the document would write it."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if value is GIVEN or value == GIVEN:
        return "present"
    return "something else" if value == OTHER else str(value)

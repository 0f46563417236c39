"""KA406: a recorded conflict of which one side was to stay, and both are bound."""

from __future__ import annotations

from collections.abc import Iterable

from kunlun_adapt.check.context import Context
from kunlun_adapt.check.proposed import around, leave_out
from kunlun_adapt.check.ranges import ranged
from kunlun_adapt.diagnostics import Finding
from kunlun_adapt.plan import Plan


def rule(context: Context) -> Iterable[Finding]:
    """Report what is bound beside the side that a decision keeps."""
    for plan in context.plans:
        bound = _bound(plan)
        for i, conflict in enumerate(context.map.conflicts):
            keep = conflict.keep
            if keep is None or keep not in bound:
                continue
            for j, name in enumerate(conflict.between):
                if name != keep and name in bound:
                    yield Finding.of(
                        "KA406",
                        f"{name} is bound in sglang {context.release} beside {keep}, which was to "
                        f"stay alone: {conflict.decision}",
                        context.document.at("conflicts", i, "between", j),
                        binding=name,
                        suggestion=_mend(context, plan, name, keep),
                    )


def _mend(context: Context, plan: Plan, name: str, keep: str) -> str:
    """Only hooks and the places of operators have `excluded`."""
    if any(g.binding == name for g in ranged(context)):
        how = f"{leave_out(context, name).text}, or another profile or range"
    elif any(k.recipe.model.name == name for k in plan.kernels):
        how = f"{leave_out(context, None).text} on each of its `binds`, or another range"
    elif any(name in (m.key, m.binding.id) for m in plan.members):
        return f"give the map no {name} of its own, or decide to keep it and not {keep}"
    else:
        how = f"a `sglang` that does not hold for {around(context).text}, or another profile"
    return f"leave {name} out where {keep} holds: {how}"


def _bound(plan: Plan) -> set[str]:
    """Every name by which a conflict may call what this plan binds."""
    names = {b.id for b in plan.bindings if b.status == "bound"}
    names |= {m.key for m in plan.members} | {k.recipe.model.name for k in plan.kernels}
    names |= {shim.shim.module for shim in plan.shims}
    names |= {arg.arg for arg in plan.server_args}
    return names | {variable.name for variable in plan.environment}

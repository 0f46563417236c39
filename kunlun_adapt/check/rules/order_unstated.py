"""KA403: hooks that wrap one call, whose order nothing states."""

from __future__ import annotations

from collections.abc import Iterable

from kunlun_adapt.check.context import Context
from kunlun_adapt.check.patches import WRAPPERS, Patch, both_names, decide, decided, shared_targets
from kunlun_adapt.diagnostics import Finding
from kunlun_adapt.plan import Plan


def rule(context: Context) -> Iterable[Finding]:
    """Report pairs of hooks on one call where who wraps whom changes what happens.

    Two hooks before a call may both change its arguments, two after it the result; one before and
    one after do not meet.
    """
    for plan in context.plans:
        after = reached(plan)
        for one, other in shared_targets(plan):
            if one.hook is None or other.hook is None or not _matters(one, other):
                continue
            if decided(context, one, other):
                continue
            stated = one.id in after.get(other.id, ()) or other.id in after.get(one.id, ())
            if stated and one.target == other.target and not _impossible(one, other, after):
                continue
            yield _report(one, other, after)


def reached(plan: Plan) -> dict[str, set[str]]:
    """Return for each hook the hooks that it runs after, directly or through others."""
    direct = {h.binding.id: set(h.hook.runs_after) for h in (*plan.hooks, *plan.planned_hooks)}
    found: dict[str, set[str]] = {}
    for id in direct:
        seen: set[str] = set()
        waiting = list(direct[id])
        while waiting:
            name = waiting.pop()
            if name not in seen:
                seen.add(name)
                waiting += direct.get(name, ())
        found[id] = seen
    return found


def _matters(one: Patch, other: Patch) -> bool:
    types = {one.type, other.type}
    return bool(types & set(WRAPPERS)) and types != {"before", "after"}


def _impossible(one: Patch, other: Patch, after: dict[str, set[str]]) -> bool:
    """Upstream puts a replacement in before it wraps: it cannot come after a wrapper."""
    return any(
        first.type == "replace" and second.type in WRAPPERS and second.id in after.get(first.id, ())
        for first, second in ((one, other), (other, one))
    )


def _report(one: Patch, other: Patch, after: dict[str, set[str]]) -> Finding:
    inner, outer = (other, one) if other.type == "replace" else (one, other)
    order = f"give {outer.id} `runs_after: [{inner.id}]`"
    if one.target != other.target:
        why = "under different names upstream orders them by name"
        mend = f"name {outer.definition} in both, and {order}"
    elif _impossible(one, other, after):
        why = f"upstream puts {inner.id} in first whatever `runs_after` says"
        mend = f"remove {outer.id} from its `runs_after`, and {order}"
    else:
        why = "nothing states which wraps which"
        mend = f"{order} if it is to wrap the other"
    return Finding.of(
        "KA403",
        f"{other.id} ({other.type}) and {one.id} ({one.type}) both hook "
        f"{other.target}{both_names(one, other)}; {why}",
        other.position,
        binding=other.id,
        target=other.target,
        upstream=other.symbol.location,
        suggestion=f"{mend}, or record what was decided in {decide(one, other)}",
    )

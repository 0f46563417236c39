"""KA313: bindings whose implementation is still to come."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from kunlun_adapt.check.context import Context
from kunlun_adapt.diagnostics import Finding
from kunlun_adapt.plan import Binding


def rule(context: Context) -> Iterable[Finding]:
    """Count the planned bindings of each document, in one finding at the first of them."""
    for file, bindings in sorted(_planned(context).items()):
        first = min(bindings, key=lambda b: (b.position.line, b.position.column))
        one = len(bindings) == 1
        families = Counter(b.family for b in bindings)
        told = ", ".join(f"{name} {count}" for name, count in sorted(families.items()))
        yield Finding.of(
            "KA313",
            f"1 binding of {file} is planned ({told}): checked against upstream, and not bound yet"
            if one
            else f"{len(bindings)} bindings of {file} are planned ({told}): checked against "
            "upstream, and not bound yet",
            first.position,
            binding=first.id if one else None,
            suggestion="kunlun-adapt list bindings names them",
        )


def _planned(context: Context) -> dict[str, list[Binding]]:
    """Return what no profile binds and at least one plans, by document."""
    planned: dict[str, Binding] = {}
    bound: set[str] = set()
    for plan in context.plans:
        for binding in plan.bindings:
            if binding.status == "planned":
                planned.setdefault(binding.id, binding)
            elif binding.status == "bound":
                bound.add(binding.id)
    found: dict[str, list[Binding]] = {}
    for id, binding in planned.items():
        if id not in bound:
            found.setdefault(binding.position.file, []).append(binding)
    return found

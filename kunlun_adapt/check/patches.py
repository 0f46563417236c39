"""The bindings that change upstream definitions, each with what two of them have in common."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

from kunlun_adapt.check.context import Context
from kunlun_adapt.diagnostics import Position
from kunlun_adapt.plan import HookBinding, Plan
from kunlun_adapt.upstream import Symbol

ADDITIVE = ("register", "extend")
"""Hooks of these types add to what is there; two of them do not get in each other's way."""

WRAPPERS = ("before", "after", "around")
"""Hooks of these types leave the original in place, or what replaced it."""


@dataclass(frozen=True, slots=True)
class Patch:
    """One binding that changes one upstream definition; a kernel's `hook` is None.

    `definition` is what it changes: for what is added, the name that it will have.
    """

    id: str
    names: frozenset[str]
    type: str
    process: frozenset[str]
    symbol: Symbol
    definition: str
    target: str
    position: Position
    hook: HookBinding | None


def patches(plan: Plan) -> Iterator[Patch]:
    """Yield what a plan changes, planned bindings included."""
    for kernel in (*plan.kernels, *plan.planned_kernels):
        if isinstance(kernel.symbol, Symbol):
            yield Patch(
                id=kernel.binding.id,
                names=frozenset({kernel.binding.id, kernel.recipe.model.name}),
                type=kernel.bind.style,
                process=frozenset(),
                symbol=kernel.symbol,
                definition=kernel.symbol.resolved,
                target=kernel.bind.target,
                position=kernel.recipe.at(*kernel.path, "target"),
                hook=None,
            )
    for hook in (*plan.hooks, *plan.planned_hooks):
        if isinstance(hook.symbol, Symbol):
            leaf = hook.at.target.rpartition(".")[2]
            added = f"{hook.symbol.resolved}.{leaf}"
            yield Patch(
                id=hook.binding.id,
                names=frozenset({hook.binding.id}),
                type=hook.hook.type,
                process=frozenset(hook.hook.process or ()),
                symbol=hook.symbol,
                definition=added if hook.hook.type == "add" else hook.symbol.resolved,
                target=hook.at.target,
                position=hook.document.at(*hook.path, "target"),
                hook=hook,
            )


def shared_targets(plan: Plan) -> Iterator[tuple[Patch, Patch]]:
    """Yield each pair on one definition that meets in a process and does not just add up.

    A re-export counts as its definition.
    """
    seen: dict[str, list[Patch]] = {}
    for patch in patches(plan):
        seen.setdefault(patch.definition, []).append(patch)
    for group in seen.values():
        for one, other in combinations(group, 2):
            additive = one.type in ADDITIVE and other.type in ADDITIVE
            if one.id != other.id and not additive and meet(one, other):
                yield one, other


def meet(one: Patch, other: Patch) -> bool:
    """Tell whether two bindings are for one process."""
    return not (one.process and other.process and not one.process & other.process)


def decided(context: Context, one: Patch, other: Patch) -> bool:
    """Tell whether the map records a decision on these two."""
    return any(
        one.names & set(conflict.between) and other.names & set(conflict.between)
        for conflict in context.map.conflicts
    )


def both_names(one: Patch, other: Patch) -> str:
    """Say what two targets have in common where they are written differently."""
    same = one.target == other.target
    return "" if same else f" (both names mean {other.definition})"


def decide(one: Patch, other: Patch) -> str:
    """Return the YAML that records a decision on two bindings."""
    return f'conflicts: - {{between: [{one.id}, {other.id}], decision: "…", recorded: YYYY-MM-DD}}'

"""The tiers of each operator, parsed and analysed once per check."""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakKeyDictionary

from kunlun_adapt.check.context import Context
from kunlun_adapt.check.operator_faults import Fault, operator_faults
from kunlun_adapt.documents import Document, OperatorRecipe
from kunlun_adapt.plan import TierAnalysis, TierTable, analyse, tier_table


@dataclass(frozen=True, slots=True)
class Analysed:
    """An operator's faults; its parsed tiers and their analysis where there are none.

    Only what is implemented is analysed: the tiers of a planned operator are still being drawn.
    """

    recipe: Document[OperatorRecipe]
    faults: tuple[Fault, ...]
    table: TierTable | None
    analysis: TierAnalysis | None


_ANALYSED: WeakKeyDictionary[Context, tuple[Analysed, ...]] = WeakKeyDictionary()


def analysed(context: Context) -> tuple[Analysed, ...]:
    """Return every operator of the workspace with what its tiers say."""
    if context not in _ANALYSED:
        # Walking the grids takes most of a check's time, and three rules ask.
        _ANALYSED[context] = tuple(_analyse(recipe) for recipe in context.operators)
    return _ANALYSED[context]


def _analyse(recipe: Document[OperatorRecipe]) -> Analysed:
    faults = tuple(operator_faults(recipe))
    done = recipe.model.status == "active" and not faults
    table = tier_table(recipe.model) if done else None
    return Analysed(recipe, faults, table, analyse(table) if table else None)


def binding_of(context: Context, recipe: Document[OperatorRecipe]) -> str:
    """Return the first binding of an operator, by which findings call it, or its own name."""
    for plan in context.plans:
        for binding in plan.bindings:
            if binding.kind == "kernel" and binding.id.startswith(f"{recipe.model.name}/"):
                return binding.id
    return recipe.model.name

"""The tiers of each operator, parsed and analysed once per check."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from kunlun_adapt.check.context import Context
from kunlun_adapt.check.operator_faults import Fault, operator_faults
from kunlun_adapt.documents import Document, OperatorRecipe
from kunlun_adapt.plan import TierAnalysis, analyse, tier_table


@dataclass(frozen=True, slots=True)
class Analysed:
    """An operator's faults; its tier analysis where there are none."""

    recipe: Document[OperatorRecipe]
    faults: tuple[Fault, ...]
    analysis: TierAnalysis | None


_ANALYSED: WeakKeyDictionary[Document[OperatorRecipe], Analysed] = WeakKeyDictionary()


def analysed(context: Context) -> Iterator[Analysed]:
    """Yield every operator of the workspace with what its tiers say; releases share the work."""
    for recipe in context.operators:
        yield _analyse(recipe)


def _analyse(recipe: Document[OperatorRecipe]) -> Analysed:
    faults = tuple(operator_faults(recipe))
    analysis = None if faults else analyse(tier_table(recipe.model))
    return Analysed(recipe, faults, analysis)


def binding_of(context: Context, recipe: Document[OperatorRecipe]) -> str:
    """Return the first binding of an operator, by which findings call it, or its own name."""
    for plan in context.plans:
        for binding in plan.bindings:
            if binding.kind == "kernel" and binding.id.startswith(f"{recipe.model.name}/"):
                return binding.id
    return recipe.model.name

"""KA307: a vendor op that no contract describes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kunlun_adapt.check.context import Context
from kunlun_adapt.check.tables import binding_of
from kunlun_adapt.check.vendor_ops import vendor_ops
from kunlun_adapt.check.wording import nearest
from kunlun_adapt.diagnostics import Finding, Position
from kunlun_adapt.documents import Document, OperatorRecipe
from kunlun_adapt.plan import ConditionError, parse_subject


def rule(context: Context) -> Iterable[Finding]:
    """Report ops of implemented operators, in `needs` and conditions, without a contract."""
    known = vendor_ops()
    for recipe in context.active_operators:
        for name, position in _named(recipe):
            if name not in known:
                near = _near(name, known)
                yield Finding.of(
                    "KA307",
                    f"no contract describes a vendor op {name!r}",
                    position,
                    binding=binding_of(context, recipe),
                    suggestion=f"did you mean {near}?"
                    if near
                    else f"add {name} to the simulator's contracts",
                )


def _near(name: str, known: frozenset[str]) -> str | None:
    """The op of the same module with a name like it, or the same op of a module like it."""
    head, _, leaf = name.rpartition(".")
    beside = [op.rpartition(".")[2] for op in known if op.rpartition(".")[0] == head]
    if beside:
        found = nearest(leaf, beside, cutoff=75)
        return f"{head}.{found}" if found else None
    return nearest(name, known, cutoff=85)


def _named(recipe: Document[OperatorRecipe]) -> Iterator[tuple[str, Position]]:
    for i, tier in enumerate(recipe.model.kernels):
        for j, name in enumerate(tier.needs):
            yield name, recipe.at("kernels", i, "needs", j)
        yield from _asked(recipe, ("kernels", i, "when"), tier.when)
    for i, failure in enumerate(recipe.model.failures):
        yield from _asked(recipe, ("failures", i, "when"), failure.when)


def _asked(
    recipe: Document[OperatorRecipe], path: tuple[str | int, ...], when: Mapping[str, Any]
) -> Iterator[tuple[str, Position]]:
    for text in when:
        try:
            subject = parse_subject(text)
        except ConditionError:
            continue  # KA304 says it
        if subject.scope == "op":
            yield subject.root, recipe.key_at(*path, text)

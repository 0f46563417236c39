"""The groups of ranges of which one at most may hold: a hook's, an operator place's, a key's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kunlun_adapt.check.context import Context
from kunlun_adapt.diagnostics import Position
from kunlun_adapt.documents import Document
from kunlun_adapt.plan import bind_groups


@dataclass(frozen=True, slots=True)
class Ranges:
    """The ranges of one binding in their order; `binding` is None for a key of the interface."""

    binding: str | None
    ranges: tuple[tuple[str, Position], ...]
    excluded: tuple[str, ...]
    position: Position
    document: Document[Any]
    paths: tuple[tuple[str | int, ...], ...]
    """Where each of the ranges' entries stands in the document."""
    leaves_out: tuple[str | int, ...] | None = None
    """Where the `excluded` of the binding stands, or would."""
    operator: bool = False
    planned: bool = False
    targets: tuple[str, ...] = ()


def ranged(context: Context) -> Iterator[Ranges]:
    """Yield every group of ranges in the workspace."""
    document = context.document
    for entry in context.catalog.hooks:
        hook, where = entry.hook, entry.document
        yield Ranges(
            binding=hook.id,
            ranges=tuple(
                (at.sglang, where.at(*entry.path, "at", j, "sglang"))
                for j, at in enumerate(hook.at)
            ),
            excluded=tuple(e.sglang for e in hook.excluded),
            position=where.key_at(*entry.path, "at"),
            document=where,
            paths=tuple((*entry.path, "at", j) for j in range(len(hook.at))),
            leaves_out=(*entry.path, "excluded"),
            targets=tuple(at.target for at in hook.at),
            planned=hook.status == "planned",
        )
    for recipe in context.operators:
        for id, indexes in bind_groups(recipe.model).items():
            binds = [recipe.model.binds[i] for i in indexes]
            stated = next((i for i in indexes if recipe.model.binds[i].excluded), indexes[-1])
            yield Ranges(
                binding=id,
                ranges=tuple(
                    (recipe.model.binds[i].sglang, recipe.at("binds", i, "sglang")) for i in indexes
                ),
                excluded=tuple(e.sglang for b in binds for e in b.excluded),
                position=recipe.at("binds", indexes[-1], "sglang"),
                document=recipe,
                paths=tuple(("binds", i) for i in indexes),
                leaves_out=("binds", stated, "excluded"),
                operator=True,
                targets=tuple(b.target for b in binds),
                planned="planned" in (recipe.model.status, *(b.status for b in binds)),
            )
    for key, spellings in context.map.interface.items():
        yield Ranges(
            binding=None,
            ranges=tuple(
                (s.sglang, document.at("interface", key, i, "sglang"))
                for i, s in enumerate(spellings)
            ),
            excluded=(),
            position=document.key_at("interface", key),
            document=document,
            paths=tuple(("interface", key, i) for i in range(len(spellings))),
        )

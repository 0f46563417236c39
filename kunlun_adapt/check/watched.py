"""The upstream functions that bindings depend on without binding them (`watch`)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kunlun_adapt.check.context import Context
from kunlun_adapt.diagnostics import Position
from kunlun_adapt.upstream import Missing, Symbol


@dataclass(frozen=True, slots=True)
class Watched:
    """One path that a binding watches, and what the release has there."""

    path: str
    symbol: Symbol | Missing
    position: Position
    binding: str


def watched(context: Context) -> Iterator[Watched]:
    """Yield what every hook and operator place of this release watches."""
    for hook in context.hooks:
        for owner, paths in ((hook.path[:-2], hook.hook.watch), (hook.path, hook.at.watch)):
            for index, path in enumerate(paths):
                place = hook.document.at(*owner, "watch", index)
                yield Watched(path, context.facts.resolve(path), place, hook.binding.id)
    for kernel in context.kernels:
        for index, path in enumerate(kernel.bind.watch):
            place = kernel.recipe.at(*kernel.path, "watch", index)
            yield Watched(path, context.facts.resolve(path), place, kernel.binding.id)

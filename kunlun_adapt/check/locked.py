"""The uses of upstream that the lock answers for, each with the symbol that the release has."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kunlun_adapt.check.context import Context
from kunlun_adapt.check.targets import uses
from kunlun_adapt.check.watched import watched
from kunlun_adapt.diagnostics import Position
from kunlun_adapt.upstream import Symbol


@dataclass(frozen=True, slots=True)
class LockedUse:
    """A path whose symbol the lock should hold."""

    path: str
    symbol: Symbol
    position: Position
    binding: str | None


def locked_uses(context: Context) -> Iterator[LockedUse]:
    """Yield every resolved use: targets, the calls behind `oot_forward`, platform members."""
    for use in uses(context):
        # References are followed when they are repaired: planning does not ask for them.
        if isinstance(use.symbol, Symbol) and use.key != "repair":
            yield LockedUse(use.path, use.symbol, use.position, use.binding)
    for kernel in context.kernels:
        if isinstance(kernel.call, Symbol) and kernel.call is not kernel.symbol:
            place = kernel.recipe.at(*kernel.path, "target")
            yield LockedUse(kernel.call.path, kernel.call, place, kernel.binding.id)
    for member in context.members:
        if isinstance(member.symbol, Symbol):
            binding = member.binding
            yield LockedUse(member.symbol.path, member.symbol, binding.position, binding.id)


def watched_uses(context: Context) -> Iterator[LockedUse]:
    """Yield what is watched and is there: the lock holds it, so that a change can be seen."""
    for item in watched(context):
        if isinstance(item.symbol, Symbol):
            yield LockedUse(item.path, item.symbol, item.position, item.binding)

"""The smallest set of things to switch off so that a failing command passes, by halving.

Zeller's delta debugging, on what is switched off: switching off everything passes, nothing fails.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TypeVar

T = TypeVar("T")


def smallest(things: Sequence[T], passes: Callable[[tuple[T, ...]], bool]) -> tuple[T, ...]:
    """Return a part of `things` that passes, and does no longer without any one of its members.

    `passes` must hold of all of them together, which is not asked; it is asked about each smaller
    part once at most.
    """
    asked: dict[tuple[T, ...], bool] = {}

    def ask(part: tuple[T, ...]) -> bool:
        if part not in asked:
            asked[part] = passes(part)
        return asked[part]

    left, pieces = tuple(things), 2
    while len(left) > 1:
        parts = _cut(left, pieces)
        rests = [tuple(t for t in left if t not in part) for part in parts]
        smaller = next((p for p in parts if ask(p)), None)
        if smaller is not None:
            left, pieces = smaller, 2
            continue
        # With two pieces, each rest is the other piece.
        smaller = next((r for r in rests if ask(r)), None) if pieces > 2 else None
        if smaller is not None:
            left, pieces = smaller, max(pieces - 1, 2)
        elif pieces < len(left):
            pieces = min(pieces * 2, len(left))
        else:
            break
    return left


def _cut(things: tuple[T, ...], pieces: int) -> list[tuple[T, ...]]:
    """Cut into pieces of nearly one size."""
    bounds = [len(things) * i // pieces for i in range(pieces + 1)]
    return [things[a:b] for a, b in pairwise(bounds) if a < b]

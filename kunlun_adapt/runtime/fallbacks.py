"""The first call of a fallback tier: what led there, said once, recorded, or refused each time.

Generated text reports a fallback tier when its counter reads 1, so that later calls cost nothing.
Where fallbacks are refused, the counters are made so that they always read 1.
"""

from __future__ import annotations

import linecache
import logging
import re
import sys
import traceback
from types import FrameType
from typing import Any

from kunlun_adapt.runtime import ledger, switches

logger = logging.getLogger("kunlun_adapt")

DEPTH = 24
"""Frames of a stack that are kept, the innermost ones."""
_PLACE = re.compile(r"\S+\.ya?ml:\d+\Z")


class Watched(list[int]):
    """Counters that count as others do and read 1, so that every fallback is reported."""

    def __getitem__(self, index: Any) -> Any:
        """Return 1, whatever the count."""
        return 1

    def __setitem__(self, index: Any, value: Any) -> None:
        """Count one call; the sum that the caller made of what it read is not the count."""
        if isinstance(index, slice):
            super().__setitem__(index, value)
        else:
            self.count_up(index, 1)

    def count_up(self, index: int, calls: int) -> None:
        """Add to a count."""
        super().__setitem__(index, super().__getitem__(index) + calls)


def record(operator: str, tier: str, reason: str) -> ledger.Fallback:
    """Record the first call of a fallback tier and log it; return what is recorded.

    The frame that called our caller is that of the generated function.
    """
    key = (operator, tier)
    known = ledger.LEDGER.fallbacks.get(key)
    if known is not None:
        return known
    frame = sys._getframe(2)
    at, why = said_of_tier(frame)
    first = ledger.Fallback(reason, why, at, stack_of(frame))
    logger.warning(
        "%s: using fallback implementation %s for %s%s",
        operator,
        tier,
        reason,
        f" ({why})" if why else "",
    )
    return ledger.fallback(operator, tier, first)


def uncount(operator: str, tier: str) -> None:
    """Take back the count of a call that was refused."""
    tiers, counts = ledger.LEDGER.tallies.get(operator, ((), []))
    if isinstance(counts, Watched) and tier in tiers:
        counts.count_up(tiers.index(tier), -1)


def stack_of(frame: FrameType | None) -> tuple[str, ...]:
    """Return `file:line in function` for a frame and those that called it, the outermost first."""
    frames = [f for f, _ in zip(traceback.walk_stack(frame), range(DEPTH), strict=False)]
    return tuple(
        f"{f.f_code.co_filename}:{line} in {f.f_code.co_name}" for f, line in reversed(frames)
    )


def said_of_tier(frame: FrameType) -> tuple[str, str]:
    """Return where the recipe has a tier and why, as the comments above the generated call say.

    Both are "" where the frame is not of generated text.
    """
    lines = linecache.getlines(frame.f_code.co_filename, frame.f_globals)
    comments: list[str] = []
    for line in reversed(lines[: frame.f_lineno]):
        text = line.strip()
        if text.startswith("#"):
            comments.insert(0, text[1:].strip())
        elif comments:
            break
    place = next((i for i in range(len(comments) - 1, -1, -1) if _PLACE.match(comments[i])), None)
    if place is None or not comments[place + 1 :]:
        return "", ""
    return comments[place], " ".join(comments[place + 2 :])


def refused(operator: str, tier: str, first: ledger.Fallback, reason: str) -> str:
    """Return the words for a call that would have fallen back."""
    place = f" ({first.at})" if first.at else ""
    why = f": {first.why}" if first.why else ""
    return (
        f"kunlun-adapt: {operator}: only the fallback {tier}{place} serves {reason}{why}; "
        f"{switches.NO_FALLBACK}=1 makes that an error. Add a tier for such calls or widen one in "
        "the recipe, or unset it"
    )

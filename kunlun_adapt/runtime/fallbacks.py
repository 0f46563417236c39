"""Calls of a fallback tier: counted by what led there, each reason said once, or refused each time.

Generated text hands every such call over; a tier that is no fallback costs nothing here.
"""

from __future__ import annotations

import functools
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
MOST = 32
"""Reasons that are told apart for each fallback tier; what comes then is counted together."""
OTHERS = f"calls of other forms than the first {MOST}"
_PLACE = re.compile(r"\S+\.ya?ml:\d+\Z")


def count(operator: str, tier: str, arguments: dict[str, Any]) -> ledger.Fallback:
    """Count a call of a fallback tier by its reason, and log that once; return what is recorded.

    The frame that called our caller is that of the generated function.
    """
    key = (operator, tier, *map(form, arguments.values()))
    known = ledger.LEDGER.fallbacks.get(key)
    if known is None:
        known = _first(key, arguments, sys._getframe(2))
    known.calls += 1
    return known


def form(value: Any) -> Any:
    """Return what of an argument makes a reason: a tensor's dtype and rank, a number's type."""
    if value is None or value is True or value is False or value.__class__ is str:
        return value
    dtype = getattr(value, "dtype", None)
    return value.__class__ if dtype is None else (dtype, value.ndim)


def spelled(name: str, form: Any) -> str:
    """Return `x=float16[*, *]` or `eps=float` for the form of an argument."""
    if isinstance(form, tuple):
        dtype, rank = form
        return f"{name}={str(dtype).removeprefix('torch.')}[{', '.join('*' * rank)}]"
    return f"{name}={form.__qualname__ if isinstance(form, type) else form}"


@functools.cache
def refusing() -> bool:
    """Tell whether the user wants no fallback in this process."""
    return switches.no_fallback()


def _first(key: ledger.Reason, arguments: dict[str, Any], frame: FrameType) -> ledger.Fallback:
    """Record and log a reason; where there are too many, the one that stands for all others."""
    from kunlun_adapt.runtime.dispatch import describe

    operator, tier, *forms = key
    others = (operator, tier, OTHERS)
    known = ledger.LEDGER.fallbacks.get(others)
    if known is not None:
        return known
    reason = ", ".join(map(spelled, arguments, forms))
    if sum(k[:2] == key[:2] for k in list(ledger.LEDGER.fallbacks)) >= MOST:
        key, reason = others, OTHERS
    at, why = said_of_tier(frame)
    call = describe(arguments)
    logger.warning(
        "%s: %s fallback implementation %s for %s%s%s",
        operator,
        "refused, not served by the" if refusing() else "using",
        tier,
        call,
        f" ({why})" if why else "",
        f"; {OTHERS} are counted together from here on" if reason is OTHERS else "",
    )
    first = ledger.Fallback(operator, tier, reason, call, why, at, stack_of(frame))
    return ledger.LEDGER.fallbacks.setdefault(key, first)


def uncount(first: ledger.Fallback) -> None:
    """Count a call as refused that was counted as served."""
    first.calls -= 1
    first.refused += 1
    tiers, counts = ledger.LEDGER.tallies.get(first.operator, ((), []))
    if first.tier in tiers:
        counts[tiers.index(first.tier)] -= 1


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


def refused(first: ledger.Fallback, call: str) -> str:
    """Return the words for a call that would have fallen back."""
    place = f" ({first.at})" if first.at else ""
    why = f": {first.why}" if first.why else ""
    return (
        f"kunlun-adapt: {first.operator}: only the fallback {first.tier}{place} serves "
        f"{call}{why}; "
        f"{switches.NO_FALLBACK}=1 makes that an error. Add a tier for such calls or widen one in "
        "the recipe, or unset it"
    )

"""The order in which hooks are applied: the map's, as far as `runs_after` lets it."""

from __future__ import annotations

from collections.abc import Iterable

from kunlun_adapt.plan.binding import HookBinding


def ordered(hooks: Iterable[HookBinding]) -> tuple[HookBinding, ...]:
    """Return hooks so that each stands behind those that it runs after, and else as they came.

    Hooks that wait for each other in a ring stay as they came: KA005 speaks of it.
    """
    waiting = list(hooks)
    done: list[HookBinding] = []
    while waiting:
        open_ = {hook.binding.id for hook in waiting}
        free = (h for h in waiting if not open_ & (set(h.hook.runs_after) - {h.binding.id}))
        chosen = next(free, waiting[0])
        waiting.remove(chosen)
        done.append(chosen)
    return tuple(done)

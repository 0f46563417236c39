"""Orders of hooks that nobody can keep: `runs_after` names no hook, or comes round to itself."""

from __future__ import annotations

from collections.abc import Iterable

from kunlun_adapt.check.context import Context
from kunlun_adapt.check.wording import did_you_mean
from kunlun_adapt.diagnostics import Finding


def unkept_orders(context: Context) -> Iterable[Finding]:
    """Report names in `runs_after` that are no hook's, and rings of hooks."""
    entries = {entry.hook.id: entry for entry in context.catalog.hooks}
    for id, entry in entries.items():
        for i, name in enumerate(entry.hook.runs_after):
            at = entry.document.at(*entry.path, "runs_after", i)
            if name not in entries:
                yield Finding.of(
                    "KA005",
                    f"no hook is called {name!r}",
                    at,
                    binding=id,
                    suggestion=did_you_mean(name, entries),
                )
            elif way := _way(name, id, {k: e.hook.runs_after for k, e in entries.items()}):
                yield Finding.of(
                    "KA005",
                    f"{id} is to run after itself: {' after '.join([id, *way])}",
                    at,
                    binding=id,
                    suggestion="remove one of these from `runs_after`",
                )


def _way(start: str, goal: str, after: dict[str, list[str]]) -> list[str]:
    """Return the names that lead from one hook to another by `runs_after`, or nothing."""
    ways = [[start]]
    seen = {start}
    while ways:
        way = ways.pop(0)
        if way[-1] == goal:
            return way
        for name in after.get(way[-1], ()):
            if name not in seen:
                seen.add(name)
                ways.append([*way, name])
    return []

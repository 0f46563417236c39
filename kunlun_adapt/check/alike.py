"""How far the places that are like a missing symbol take what a binding hands to it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any

from kunlun_adapt.check.context import Context
from kunlun_adapt.upstream import Missing, Suggestion, Symbol

FITTING = ", and takes the same parameters"
ENOUGH = 3
"""Fewer parameters than these many functions share, so they tell no rename by themselves."""
RENAMED = 0.75
MOST = 0.94
"""Only the same body says more."""
OTHERS = 0.75
"""How much is left of a place that another binding is about."""


def by_parameters(
    context: Context, missing: Missing, entry: Mapping[str, Any], taken: Collection[str]
) -> Missing:
    """Return the miss with its places weighed anew, by their parameters and by who has them.

    The binding names every parameter that the symbol had. Of two places of its name the one that
    takes them all is it; one of another name may be it only so far as it takes them.
    """
    names = _named(entry)
    found = [*missing.suggestions, *_renamed(context, missing, names)]
    shares = {s.path: _share(context, s.path, names) for s in found}
    same = {s.path for s in found if _is_named_so(s, missing.path)}
    fits = any(shares[path] == 1 for path in same)
    weighed = [
        _of_the_name(s, shares[s.path], fits) if s.path in same else _alike(s, shares[s.path])
        for s in found
    ]
    weighed = [_others(context, s, taken) for s in weighed]
    ranked = sorted(weighed, key=lambda s: (-s.score, s.path))
    return replace(missing, suggestions=tuple(ranked[: max(len(missing.suggestions), 3)]))


def _named(entry: Mapping[str, Any]) -> set[str]:
    """The parameters that an entry maps or ignores."""
    mapped = {str(path).partition(".")[0] for path in entry.get("args", {}).values()}
    return {n for n in (*mapped, *entry.get("ignores", ())) if not n.startswith("$")}


def _share(context: Context, path: str, names: set[str]) -> float | None:
    """Return which part of the parameters a place takes, None where there are none to compare."""
    symbol = context.facts.resolve(path)
    if not names or not isinstance(symbol, Symbol) or symbol.signature is None:
        return None
    return len(names & set(symbol.signature.names)) / len(names)


def class_of(path: str) -> str:
    """Return the name of the class that a path leads into, "" without one."""
    owner = path.split(".")[-2]
    return owner if owner[:1].isupper() else ""


def _is_named_so(place: Suggestion, path: str) -> bool:
    """Tell whether a place has the symbol's name; of a method's also its class."""
    same = place.path.rpartition(".")[2] == path.rpartition(".")[2]
    return same and class_of(place.path) == class_of(path)


def _of_the_name(place: Suggestion, share: float | None, fits: bool) -> Suggestion:
    """Weigh a place of the same name, where another may take (`fits`) what this one does not."""
    lost = fits and share is not None and share < 1 and place.score < MOST
    return replace(place, score=round(place.score * 0.9, 3)) if lost else place


def _alike(place: Suggestion, share: float | None) -> Suggestion:
    """Weigh a place of another name, or of another class."""
    if share is None or place.score >= MOST:
        return place
    if share == 1 and FITTING not in place.why:
        score = min(MOST, (1 + place.score) / 2)
        return replace(place, score=round(score, 3), why=place.why + FITTING)
    return replace(place, score=round(place.score * (0.5 + share / 2), 3))


def _others(context: Context, place: Suggestion, taken: Collection[str]) -> Suggestion:
    symbol = context.facts.resolve(place.path)
    theirs = isinstance(symbol, Symbol) and symbol.resolved in taken and place.score < MOST
    return replace(place, score=round(place.score * OTHERS, 3)) if theirs else place


def _renamed(context: Context, missing: Missing, names: set[str]) -> Iterator[Suggestion]:
    """Yield the functions of the symbol's module that take the same parameters and no others."""
    table = context.reader.table(missing.deepest) if context.reader and missing.deepest else None
    if table is None or len(names) < ENOUGH:
        return
    near = {s.path for s in missing.suggestions}
    for name, bound in table.scope.bindings.items():
        path = f"{missing.deepest}.{name}"
        if path in near or not any(item.kind == "function" for item in bound):
            continue
        symbol = context.facts.resolve(path)
        signature = symbol.signature if isinstance(symbol, Symbol) else None
        if isinstance(symbol, Symbol) and signature and set(signature.names) == names:
            yield Suggestion(path, symbol.location, RENAMED, f"a function here{FITTING}")

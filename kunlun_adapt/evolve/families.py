"""The families that a workspace has, told from its documents alone."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from rapidfuzz import process

from kunlun_adapt.documents import Catalog

NEAR = 75
"""How alike, of 100, a name has to be so that it may have been meant."""
PLATFORM, SHIM = "platform", "shim"
OFFERED = ("attention", "quantization")
"""Families of what upstream offers by name, whether or not something is bound there."""


def families_of(catalog: Catalog) -> tuple[str, ...]:
    """Return the families of all bindings, sorted, whatever they claim."""
    found = {PLATFORM, *(entry.hook.family for entry in catalog.hooks)}
    found |= {recipe.model.family for recipe in catalog.operators}
    if catalog.platform_map is not None and catalog.platform_map.model.shims:
        found.add(SHIM)
    return tuple(sorted(found))


def unknown_family(names: Iterable[str], catalog: Catalog, also: Collection[str] = ()) -> str:
    """Say which of some names is no family, and what may be meant; "" where all are."""
    known = families_of(catalog)
    for name in names:
        if name in known or name in also:
            continue
        near = process.extractOne(name, known, score_cutoff=NEAR)
        hint = f"did you mean {near[0]}?" if near else f"one of {', '.join(known)}"
        return f"--family: there is no {name!r}; {hint}"
    return ""

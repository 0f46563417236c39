"""Model classes out of tree: put into upstream's table, and asked for as upstream asks."""

from __future__ import annotations

import pkgutil
from typing import Any

from kunlun_adapt.runtime import ledger


def register_model(registry: Any, architecture: str, impl: str, *, replaces: bool) -> None:
    """Have upstream's registry answer with our class for an architecture.

    Registering the same class again changes nothing. Raises LookupError where upstream has a class
    for the architecture that the map does not replace, or does not hand out ours afterwards;
    TypeError where `impl` is no class; and whatever loading it raises.
    """
    ours = _load(impl)
    if not isinstance(ours, type):
        raise TypeError(f"{impl} is no class")
    held = registry.models.get(architecture)
    taken = held is not None or architecture in registry.get_supported_archs()
    if taken and held is not ours and not replaces:
        theirs = registry.models[architecture]
        raise LookupError(
            f"{architecture} is served by {theirs.__module__}.{theirs.__qualname__} already; "
            "say `replaces: true` if ours shall take its place, or name another architecture"
        )
    registry.models[architecture] = ours
    found, name = registry.resolve_model_cls([architecture])
    if found is not ours or name != architecture:
        raise LookupError(f"upstream answers {architecture} with {found.__qualname__}, not ours")


def _load(impl: str) -> Any:
    try:
        return pkgutil.resolve_name(impl)
    except SystemExit as error:
        if ledger.LEDGER.refused:
            raise  # our own refusal, of something that the module imported
        raise ImportError(f"{impl} cannot be loaded: SystemExit: {error}") from error

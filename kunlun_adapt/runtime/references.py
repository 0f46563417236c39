"""Upstream modules that still hold an original after its defining module was patched."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import ModuleType
from typing import Any

UPSTREAM = "sglang"


def holders(originals: Mapping[int, str]) -> dict[str, list[str]]:
    """Return, by binding id, the module attributes in upstream that are still the original.

    `originals` maps `id(original)` to a binding id; the caller keeps the originals alive.
    """
    found: dict[str, list[str]] = {}
    for name, module in list(sys.modules.items()):
        if not isinstance(module, ModuleType) or name.split(".")[0] != UPSTREAM:
            continue
        for attribute, value in list(vars(module).items()):
            binding = originals.get(id(value))
            if binding is not None:
                found.setdefault(binding, []).append(f"{name}.{attribute}")
    return found


def resolve(path: str) -> tuple[Any, str]:
    """Return (owner, attribute) of a dotted path, importing the longest module prefix.

    Raises ImportError or AttributeError.
    """
    import importlib

    parts = path.split(".")
    for end in range(len(parts) - 1, 0, -1):
        name = ".".join(parts[:end])
        try:
            owner: Any = importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name and (name == error.name or name.startswith(f"{error.name}.")):
                continue
            raise
        for part in parts[end:-1]:
            owner = getattr(owner, part)
        return owner, parts[-1]
    raise ModuleNotFoundError(f"no module on the way to {path!r}")

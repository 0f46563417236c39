"""Upstream modules that still hold an original after its defining module was patched."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

UPSTREAM = "sglang"


@dataclass(frozen=True, slots=True)
class Patched:
    """A name in an upstream module that holds our object now; `original` is what it held before."""

    binding: str
    module: str
    name: str
    original: Any


def holders(patched: Iterable[Patched]) -> dict[str, list[str]]:
    """Return, by binding id, the names in other upstream modules that are still the original.

    The defining module's other names are left alone: there an alias is upstream's own choice. Where
    the patched name is itself an alias, only names spelled like it count, since others may hold
    the function under its own name and rightly so.
    """
    wanted = {id(p.original): p for p in patched}
    found: dict[str, list[str]] = {}
    for module_name, module in list(sys.modules.items()):
        if not isinstance(module, ModuleType) or module_name.split(".")[0] != UPSTREAM:
            continue
        for name, value in list(vars(module).items()):
            patch = wanted.get(id(value))
            if patch is None or module_name == patch.module:
                continue
            alias = getattr(patch.original, "__name__", patch.name) != patch.name
            if not alias or name == patch.name:
                found.setdefault(patch.binding, []).append(f"{module_name}.{name}")
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

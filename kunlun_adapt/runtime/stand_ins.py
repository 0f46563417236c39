"""Putting a module of ours where upstream will import a package that cannot be had here."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from types import ModuleType

from kunlun_adapt.runtime.ledger import Entry


def put_stand_in(entry: Entry, module: str, provide: str, *, shadows: bool) -> None:
    """Let `provide` stand for `module`, and record in `entry` how that went.

    A package that is present and works stays, unless the map says that the stand-in `shadows` it. A
    package that is present and broken is reported, and not covered up.
    """
    try:
        if not shadows and _works(module):
            entry.state = "elsewhere"
            entry.detail = f"{module} is installed; no stand-in needed"
            return
    except Exception as error:  # a package in the way may raise anything
        entry.fail(
            f"{module} is present, and importing it fails: {type(error).__name__}: {error}\n"
            f"mend or remove it, or let the map say that {provide} stands in for it all the same "
            "(`shadows: true`)"
        )
        return
    try:
        stand_in = importlib.import_module(provide)
        earlier = sys.modules.get(module)
        if earlier is not None and earlier is not stand_in:
            entry.fail(
                f"{module} was imported before {provide} could stand in for it; start SGLang so "
                "that nothing imports it before the platform is resolved"
            )
            return
        _put_in_place(module, stand_in)
    except Exception as error:  # a stand-in, or the package around it, may raise anything
        entry.fail(f"no stand-in {provide} for {module}: {type(error).__name__}: {error}")
        return
    if importlib.import_module(module) is stand_in:
        entry.state = "applied"
        entry.detail = f"{provide} stands in for it"
    else:
        entry.fail(f"importing {module} does not give {provide}")


def _works(module: str) -> bool:
    """Tell whether a package is there, by importing it. Raises what a broken one raises."""
    if sys.modules.get(module) is not None:
        return True
    parent = module.rpartition(".")[0]
    if parent and not _works(parent):
        return False
    spec = importlib.util.find_spec(module)
    if spec is None:
        return False
    if spec.loader is None and spec.origin is None:
        places = ", ".join(spec.submodule_search_locations or ())
        raise ImportError(f"{places} is a folder of that name without a package in it")
    importlib.import_module(module)
    return True


def _put_in_place(module: str, stand_in: ModuleType) -> None:
    parent, _, name = module.rpartition(".")
    if parent:
        setattr(importlib.import_module(parent), name, stand_in)
    sys.modules[module] = stand_in

"""Doing something with an upstream module once it has been imported whole."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import wrapt

Patch = Callable[[ModuleType], None]


def when_imported(name: str, patch: Patch) -> bool:
    """Call `patch` when module `name` is imported whole; at once if it is already.

    Returns whether the module had been imported before. A module that is being imported at this
    moment is patched when it is done; if that import fails, when a later one succeeds.
    """
    keep(name)
    module = sys.modules.get(name)
    if module is None:
        wrapt.register_post_import_hook(patch, name)
        return False
    if half_imported(module):
        _when_done(module, patch)
        return False
    patch(module)
    return True


def half_imported(module: ModuleType) -> bool:
    """Tell whether a module is being imported at this moment."""
    return bool(getattr(getattr(module, "__spec__", None), "_initializing", False))


def keep(name: str) -> None:
    """Refuse that a module is loaded a second time, which would put upstream's own back."""
    finder = next((f for f in sys.meta_path if isinstance(f, _Keeper)), None)
    if finder is None:
        finder = _Keeper()
        sys.meta_path.insert(0, finder)
    finder.names.add(name)


class _Keeper(importlib.abc.MetaPathFinder):
    """Finds nothing; it stands in the way of `importlib.reload`, which alone names a target."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if target is not None and fullname in self.names:
            raise ImportError(
                f"kunlun-adapt has bound names in {fullname}, and to load it again would undo that "
                "without a word; start the process anew",
                name=fullname,
            )
        return None


class _WatchedSpec(importlib.machinery.ModuleSpec):
    """A module spec that tells when the import machinery marks the import as done.

    The machinery sets `spec._initializing = False` as its last step, and offers no other sign.
    """

    _patches: list[tuple[ModuleType, Patch]]

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name != "_initializing" or value is not False:
            return
        patches, self._patches = self._patches, []
        for module, patch in patches:
            if sys.modules.get(self.name) is module:
                patch(module)
            else:  # the import failed; the next one makes another module
                when_imported(self.name, patch)


def _when_done(module: ModuleType, patch: Patch) -> None:
    spec = module.__spec__
    assert spec is not None  # a half-imported module has one: it says so
    if not isinstance(spec, _WatchedSpec):
        spec.__class__ = _WatchedSpec
        spec._patches = []  # type: ignore[attr-defined]  # its class has just become _WatchedSpec
    spec._patches.append((module, patch))  # type: ignore[attr-defined]

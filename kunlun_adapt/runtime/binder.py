"""The early door's hands: environment, shims, and kernels on the modules that define them."""

from __future__ import annotations

import importlib
import logging
import os
import sys
from types import ModuleType
from typing import Any

from kunlun_adapt.runtime import ledger
from kunlun_adapt.runtime.generated import PACKAGE
from kunlun_adapt.runtime.imports import when_imported
from kunlun_adapt.runtime.operators import OWN
from kunlun_adapt.runtime.references import Patched, holders
from kunlun_adapt.runtime.stop import refuse_failures

logger = logging.getLogger("kunlun_adapt")


class Binder:
    """Takes the calls of the generated `bindings.install`."""

    def __init__(self, dispatch_key: str) -> None:
        self._key = dispatch_key
        self._members: list[tuple[ledger.Entry, str]] = []
        self._patched: list[Patched] = []
        self._late: set[str] = set()

    def environment(self, name: str, default: str) -> None:
        """Give an environment variable its default."""
        os.environ.setdefault(name, default)

    def shim(self, id: str, module: str, provide: str, *, required: bool) -> None:
        """Put a stand-in where `module` is not installed; a real package is never shadowed."""
        entry = ledger.enter(id, required)
        if module in sys.modules or _installed(module):
            entry.state, entry.detail = "elsewhere", f"{module} is installed; no stand-in needed"
            return
        try:
            sys.modules[module] = importlib.import_module(provide)
        except ImportError as error:
            entry.state, entry.detail = "failed", f"{provide} cannot be imported: {error}"
            return
        entry.state = "applied"

    def member(self, id: str, name: str) -> None:
        """Note a member of the platform class; it is read back from upstream's live platform."""
        self._members.append((ledger.enter(id, True), name))

    def own(self, id: str, operator: str) -> None:
        """Note an operator that our own classes take when they are made."""
        ledger.enter(id, True).detail = OWN

    def function(
        self, id: str, module: str, attribute: str, operator: str, function: str, *, required: bool
    ) -> None:
        """Put the generated function in the place of an upstream function."""
        entry = ledger.enter(id, required)

        def patch(upstream: ModuleType) -> None:
            with _reporting(entry):
                owner: Any = upstream
                *path, name = attribute.split(".")
                for part in path:
                    owner = getattr(owner, part)
                original = getattr(owner, name)
                served = _generated(operator, function)
                served.__wrapped__ = original
                setattr(owner, name, served)
                self._patched.append(Patched(id, module, name, original))
                entry.state = "applied" if getattr(owner, name) is served else "failed"

        if when_imported(module, patch):
            self._late.add(id)

    def oot_forward(
        self, id: str, module: str, attribute: str, operator: str, function: str, *, required: bool
    ) -> None:
        """Register the generated function as an out-of-tree forward of an upstream class."""
        entry = ledger.enter(id, required)

        def patch(upstream: ModuleType) -> None:
            with _reporting(entry):
                cls: Any = upstream
                for part in attribute.split("."):
                    cls = getattr(cls, part)
                served = _generated(operator, function)
                cls.register_oot_forward(cls, served, self._key)
                # Upstream offers no way to ask; this table is what its dispatch reads.
                held = cls._oot_forward_registry.get(self._key, {}).get(cls)
                entry.state = "applied" if held is served else "failed"
                if held is not served:
                    entry.detail = "upstream's registry of out-of-tree forwards does not hold it"

        when_imported(module, patch)

    def check_references(self) -> None:
        """Fail the function bindings that upstream modules still hold in their original form."""
        for id, places in holders(self._patched).items():
            entry = ledger.LEDGER.entries[id]
            entry.state = "failed"
            when = " before kunlun-adapt was activated" if id in self._late else ""
            entry.detail = (
                f"upstream's original was taken{when} and is still held by {', '.join(places)};\n"
                "start SGLang so that nothing imports its kernels before the platform is resolved"
            )

    def settle(self) -> None:
        """Read back the platform's members once upstream has made its platform."""
        platforms = sys.modules.get("sglang.srt.platforms")
        platform = getattr(platforms, "_current_platform", None)
        if platform is None:
            return
        ours = type(platform).__module__ == f"{PACKAGE}.platform"
        for entry, name in self._members:
            holder: Any = type(platform).__dict__ if ours else {}
            first, _, rest = name.partition(".")
            held = first in holder and (not rest or hasattr(holder[first], rest))
            entry.state = "applied" if held else "failed"
            if not held:
                entry.detail = f"upstream's platform is {type(platform).__name__}, not ours"


class _reporting:
    """Turns an exception while patching into a failed entry, and stops a required one at once.

    An exception that left a post-import hook would make Python import the module again, unpatched.
    """

    def __init__(self, entry: ledger.Entry) -> None:
        self._entry = entry

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: Any, trace: Any) -> bool:
        if isinstance(error, Exception):
            self._entry.state = "failed"
            self._entry.detail = f"{type(error).__name__}: {error}"
            logger.debug("binding %s failed", self._entry.id, exc_info=error)
        if kind is None or isinstance(error, Exception):
            refuse_failures()
            return True
        return False


def _generated(operator: str, function: str) -> Any:
    return getattr(importlib.import_module(f"{PACKAGE}.operators.{operator}"), function)


def _installed(module: str) -> bool:
    import importlib.util

    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False

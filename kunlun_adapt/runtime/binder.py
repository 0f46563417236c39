"""The early door's hands: environment, shims, and kernels on the modules that define them."""

from __future__ import annotations

import functools
import importlib
import logging
import os
import pkgutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from kunlun_adapt.runtime import covering, ledger
from kunlun_adapt.runtime.first_calls import watched
from kunlun_adapt.runtime.generated import PACKAGE
from kunlun_adapt.runtime.imports import when_imported
from kunlun_adapt.runtime.models import register_model
from kunlun_adapt.runtime.operators import OWN
from kunlun_adapt.runtime.references import Patched, holders, since, static
from kunlun_adapt.runtime.stand_ins import put_stand_in
from kunlun_adapt.runtime.stop import refuse_failures

logger = logging.getLogger("kunlun_adapt")


class Binder:
    """Takes the calls of the generated `bindings.install`, then `judge()`."""

    def __init__(self, dispatch_key: str) -> None:
        self._key = dispatch_key
        self._members: list[tuple[ledger.Entry, str]] = []
        self._handed_out: list[tuple[ledger.Entry, str]] = []
        self._patched: list[Patched] = []
        self._kernels: list[covering.Bound] = []
        self._late: set[str] = set()
        self._judged = False

    def environment(self, name: str, default: str) -> None:
        """Give an environment variable its default."""
        given = os.environ.setdefault(name, default)
        why = "the map's default" if given == default else "as given; the map's default is not used"
        ledger.choose(f"env.{name}", given, why)

    def shim(
        self, id: str, module: str, provide: str, *, required: bool, shadows: bool = False
    ) -> None:
        """Put a stand-in where `module` is absent, or where the map says that it shadows it."""
        put_stand_in(ledger.enter(id, required), module, provide, shadows=shadows)

    def member(self, id: str, name: str, impl: str | None = None) -> None:
        """Note a member of the platform class; it is read back from upstream's live platform.

        `impl` is what the member hands out, where that is ours.
        """
        entry = ledger.enter(id, True)
        self._members.append((entry, name))
        if impl is not None:
            self._handed_out.append((entry, impl))
            ledger.choose(id, impl, "handed out by the platform")

    def load_members(self) -> None:
        """Load what the platform hands out, so that a class that is not there fails by name.

        Upstream would meet it in the middle of its set-up, and end in its own traceback.
        """
        for entry, impl in self._handed_out:
            try:
                pkgutil.resolve_name(impl)
            except (Exception, SystemExit) as error:  # an implementation may raise anything
                if ledger.LEDGER.refused:
                    raise  # our own refusal, of something that the module imported
                entry.fail(f"{impl} cannot be loaded: {type(error).__name__}: {error}")

    def own(self, id: str, operator: str) -> None:
        """Note an operator that our own classes take when they are made."""
        ledger.enter(id, True).detail = OWN

    def function(
        self, id: str, module: str, attribute: str, operator: str, function: str, *, required: bool
    ) -> None:
        """Put the generated function in the place of an upstream function."""
        entry = ledger.enter(id, required)

        def change(upstream: ModuleType) -> None:
            owner, name = _owner(upstream, attribute)
            original = static(owner, name)
            if isinstance(original, (classmethod, staticmethod, property)):
                kind = type(original).__name__
                raise TypeError(f"{module}.{attribute} is a {kind}; use a hook of type `replace`")
            served = watched(id, _generated(operator, function))
            served.__wrapped__ = original
            setattr(owner, name, served)
            if static(owner, name) is not served:
                raise AttributeError(f"{module}.{attribute} does not keep what is put there")
            patched = Patched(id, module, name, original)
            self._patched.append(patched)
            held = functools.partial(static, owner, name)
            place = f"{module}.{attribute}"
            self._kernels.append(covering.Bound(entry, place, operator, served, held))
            entry.state = "applied"
            if self._judged:  # who imports it from now on gets ours; who is halfway may not have
                self._fail_holders(holders([patched], since(upstream)))

        if self._when_imported(entry, module, change):
            self._late.add(id)

    def oot_forward(
        self, id: str, module: str, attribute: str, operator: str, function: str, *, required: bool
    ) -> None:
        """Register the generated function as an out-of-tree forward of an upstream class."""
        entry = ledger.enter(id, required)

        def change(upstream: ModuleType) -> None:
            owner, name = _owner(upstream, attribute)
            cls = getattr(owner, name)
            served = watched(id, _generated(operator, function))
            cls.register_oot_forward(cls, served, self._key)
            # Upstream offers no way to ask; this table is what its dispatch reads.
            if cls._oot_forward_registry.get(self._key, {}).get(cls) is not served:
                raise LookupError("upstream's registry of out-of-tree forwards does not hold it")

            def held() -> Any:
                now = getattr(owner, name)  # by its very class upstream looks a forward up
                return now._oot_forward_registry.get(self._key, {}).get(now, now)

            place = f"{module}.{attribute}"
            self._kernels.append(covering.Bound(entry, place, operator, served, held))
            entry.state = "applied"

        self._when_imported(entry, module, change)

    def model(
        self,
        id: str,
        module: str,
        attribute: str,
        architecture: str,
        impl: str,
        *,
        replaces: bool,
        required: bool,
    ) -> None:
        """Put a model class of ours into upstream's table as soon as there is one."""
        entry = ledger.enter(id, required)

        def change(upstream: ModuleType) -> None:
            owner, name = _owner(upstream, attribute)
            register_model(getattr(owner, name), architecture, impl, replaces=replaces)
            entry.state = "applied"

        self._when_imported(entry, module, change)

    def split_ops(self, id: str, module: str, attribute: str, ops: tuple[str, ...]) -> None:
        """Have upstream cut its piecewise graphs at ops of ours that must not be captured."""
        entry = ledger.enter(id, True)

        def change(upstream: ModuleType) -> None:
            owner, name = _owner(upstream, attribute)
            held = getattr(owner, name)
            held.extend(op for op in ops if op not in held)
            entry.state = "applied"

        self._when_imported(entry, module, change)

    def judge(self) -> None:
        """Look for references to originals, then stop for all that failed; from here on at once."""
        self._judged = True
        self._fail_holders(holders(self._patched))
        refuse_failures()

    def read_kernels(self, replaces: covering.Replaces) -> None:
        """Read the kernels back, once upstream has applied everybody's hooks."""
        covering.read_back(self._kernels, replaces)

    def settle(self) -> None:
        """Read back the platform's members, whenever somebody looks; stop on a required miss.

        Once refused a process is not refused again: what refuses writes, and so looks.
        """
        self.read_members()
        if self._judged and not ledger.LEDGER.refused:
            refuse_failures()

    def read_members(self) -> None:
        """Read back the platform's members once upstream has made its platform."""
        platforms = sys.modules.get("sglang.srt.platforms")
        platform = getattr(platforms, "_current_platform", None)
        if platform is None:
            return
        ours = type(platform).__module__ == f"{PACKAGE}.platform"
        for entry, name in self._members:
            holder: Any = type(platform).__dict__ if ours else {}
            first, _, rest = name.partition(".")
            if entry.state == "failed":
                continue
            if first in holder and (not rest or hasattr(holder[first], rest)):
                entry.state = "applied"
            else:
                entry.fail(f"upstream's platform is {type(platform).__name__}, without our {name}")

    def _when_imported(
        self, entry: ledger.Entry, module: str, change: Callable[[ModuleType], None]
    ) -> bool:
        def patch(upstream: ModuleType) -> None:
            with self._recording(entry):
                change(upstream)

        return when_imported(module, patch)

    @contextmanager
    def _recording(self, entry: ledger.Entry) -> Iterator[None]:
        """Turn an exception while patching into a failed entry.

        One that left a post-import hook would make Python import the module again, unpatched. While
        the bindings are being installed failures are collected; later each required one ends the
        process.
        """
        try:
            yield
        except Exception as error:
            entry.fail(f"{type(error).__name__}: {error}")
            logger.warning("binding %s is not in effect", entry.id, exc_info=error)
        if self._judged:
            refuse_failures()

    def _fail_holders(self, found: dict[str, list[str]]) -> None:
        for id, places in found.items():
            early = id in self._late
            when = " before kunlun-adapt was activated" if early else " while it was imported"
            ledger.LEDGER.entries[id].fail(
                f"upstream's original was taken{when} and is still held by {', '.join(places)};\n"
                + (
                    "start SGLang so that nothing imports its kernels before the platform is "
                    "resolved"
                    if early
                    else "bind the name that these modules import, too"
                )
            )


def _owner(module: ModuleType, attribute: str) -> tuple[Any, str]:
    owner: Any = module
    *path, name = attribute.split(".")
    for part in path:
        owner = getattr(owner, part)
    return owner, name


def _generated(operator: str, function: str) -> Any:
    return getattr(importlib.import_module(f"{PACKAGE}.operators.{operator}"), function)

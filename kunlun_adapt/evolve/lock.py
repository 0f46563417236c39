"""Write down what a workspace's bindings were verified against, release by release."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kunlun_adapt.check import Context
from kunlun_adapt.check.usage import usage_row
from kunlun_adapt.documents import Catalog
from kunlun_adapt.plan import CAPABILITIES, PLATFORM, make_plan, spelled
from kunlun_adapt.upstream import Lock, Missing, Resolver, Symbol, lock_release


class _Recorder:
    """Facts that remember every path that a plan asked for."""

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver
        self.asked: list[str] = []

    @property
    def version(self) -> str:
        return self._resolver.version

    def resolve(self, path: str) -> Symbol | Missing:
        found = self._resolver.resolve(path)
        if isinstance(found, Symbol):
            self.asked.append(path)
        return found

    def members(self, class_path: str) -> dict[str, Symbol]:
        return self._resolver.members(class_path)


def lock_for(catalog: Catalog, resolver: Resolver) -> tuple[Lock, tuple[Missing, ...]]:
    """Return the lock of one release, for all profiles, and the bound targets that are missing.

    What is locked is exactly what planning asks for, so that a plan made from the lock equals one
    made from the release. Raises AdaptError without a usable map.
    """
    recorder = _Recorder(resolver)
    missing: dict[str, Missing] = {}
    document = catalog.platform_map
    profiles = document.model.device.profiles if document else {"card": None}
    for profile in profiles:
        plan = make_plan(catalog, recorder, profile)
        for _, lost in plan.unresolved():
            missing.setdefault(lost.path, lost)
        for member in plan.members:
            # An upstream class that a factory hands out is bound as much as what it is handed to.
            if member.value == "class" and member.content.startswith("sglang."):
                recorder.resolve(member.content.replace(":", "."))
    classes = []
    for key in (PLATFORM, CAPABILITIES):
        spelling = spelled(document.model, key, resolver.version) if document else None
        if spelling is not None and spelling.call is not None:
            classes.append(spelling.call)
    lock, _ = lock_release(resolver, recorder.asked, classes=classes)
    return lock, tuple(missing.values())


def usage_for(
    catalog: Catalog, resolver: Resolver, lock: Lock, held: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Return what is to be locked about upstream's uses of the targets in one release.

    `lock` is the whole lock as it will be; `held` is what stood in it before, which is kept where
    nothing that it depends on has changed.
    """
    document = catalog.platform_map
    assert document is not None, "lock_for comes first, and refuses a workspace without a map"
    plans = tuple(make_plan(catalog, resolver, p) for p in document.model.device.profiles)
    return usage_row(Context(catalog, document, resolver, plans, lock), held)

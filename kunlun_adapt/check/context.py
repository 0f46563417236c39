"""What every rule reads: the documents, the release, the plans of all profiles, the lock."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from kunlun_adapt.check.releases import release_at
from kunlun_adapt.documents import Catalog, Document, OperatorRecipe, PlatformMap, in_range
from kunlun_adapt.plan import PLATFORM, HookBinding, KernelBinding, Member, Plan, spelled
from kunlun_adapt.upstream import Facts, Lock, Missing, Resolver, Symbol

if TYPE_CHECKING:
    from kunlun_adapt.upstream import Index

PLUGINS = "sglang.srt.plugins"
"""Where upstream looks for plugins: without it there is no door for a platform of ours."""

Item = TypeVar("Item", Member, HookBinding, KernelBinding)


@dataclass(frozen=True, eq=False)
class Context:
    """Everything that one check of one release works on. Rules only read it."""

    catalog: Catalog
    document: Document[PlatformMap]
    facts: Facts
    plans: tuple[Plan, ...]
    lock: Lock | None = None
    beyond_claims: bool = False
    source: str | None = None
    """How the user named the release (a version, a wheel, a folder, `git:PATH@REV`), if known."""
    workspace: str | None = None
    """How the user named the workspace, None where the command finds it by itself."""

    @property
    def map(self) -> PlatformMap:
        return self.document.model

    @property
    def release(self) -> str:
        return self.facts.version

    @property
    def floor(self) -> str:
        """The release at which a range begins that is proposed for this one."""
        return release_at(self.release)

    def lock_command(self, *releases: str) -> str:
        """Return what to run so that the lock holds some releases.

        Without any it is this very one, read again from where it was read.
        """
        named = [("--workspace", self.workspace)] if self.workspace else []
        named += [("--sglang", release) for release in releases or (self.source or self.release,)]
        return shlex.join(["kunlun-adapt", "lock", *(part for option in named for part in option)])

    @property
    def claimed(self) -> bool:
        """Whether the release is among those that the map claims."""
        return in_range(self.map.sglang, self.release)

    @property
    def reader(self) -> Resolver | None:
        """The release's files, or None where only the lock's facts are at hand."""
        return self.facts if isinstance(self.facts, Resolver) else None

    @cached_property
    def index(self) -> Index | None:
        """Every symbol of the release, or None where only the lock's facts are at hand.

        It is read from the cache or built when the first rule asks, which takes seconds.
        """
        return None if self.reader is None else self.reader.index

    @cached_property
    def members(self) -> tuple[Member, ...]:
        """The bound members of the platform class: one per key, and per value where they differ."""
        return self._once(lambda plan: plan.members, lambda m: (m.key, m.content))

    @cached_property
    def hooks(self) -> tuple[HookBinding, ...]:
        """The bound and planned hooks of any profile, each once."""
        return self._once(
            lambda plan: (*plan.hooks, *plan.planned_hooks), lambda h: (h.document.file, h.path)
        )

    @cached_property
    def kernels(self) -> tuple[KernelBinding, ...]:
        """The bound and planned kernel places of any profile, each once."""
        return self._once(
            lambda plan: (*plan.kernels, *plan.planned_kernels),
            lambda k: (k.recipe.model.name, k.path),
        )

    @property
    def operators(self) -> tuple[Document[OperatorRecipe], ...]:
        """Every operator of the workspace, planned ones included."""
        return self.catalog.operators

    @property
    def active_operators(self) -> tuple[Document[OperatorRecipe], ...]:
        """The operators that are implemented: those with a golden and kernels to speak of."""
        return tuple(r for r in self.operators if r.model.status == "active")

    def _once(
        self, items: Callable[[Plan], Iterable[Item]], key: Callable[[Item], object]
    ) -> tuple[Item, ...]:
        found: dict[object, Item] = {}
        for plan in self.plans:
            for item in items(plan):
                found.setdefault(repr(key(item)), item)
        return tuple(found.values())

    @cached_property
    def platform_packages_missing(self) -> tuple[str, ...]:
        """The packages of upstream's plugin interface that this release does not have."""
        return closed(self.map, self.facts, self.beyond_claims)

    @cached_property
    def platform_class(self) -> Symbol | None:
        """Upstream's platform class in this release, or None where there is none."""
        spelling = spelled(self.map, PLATFORM, self.release, self.beyond_claims)
        if self.platform_packages_missing or spelling is None or spelling.call is None:
            return None
        found = self.facts.resolve(spelling.call)
        return found if isinstance(found, Symbol) else None

    @cached_property
    def platform_members(self) -> dict[str, Symbol]:
        """The members of upstream's platform class in this release, inherited ones included."""
        return self.facts.members(self.platform_class.path) if self.platform_class else {}

    def spelling_at(self, key: str) -> tuple[str | int, ...] | None:
        """Return the path of the spelling of `key` that holds in this release."""
        wanted = spelled(self.map, key, self.release, self.beyond_claims)
        for name in (key, key.rpartition(".")[0]):
            for index, spelling in enumerate(self.map.interface.get(name, ())):
                if spelling is wanted:
                    return ("interface", name, index)
        return None


def closed(platform: PlatformMap, facts: Facts, beyond_claims: bool = False) -> tuple[str, ...]:
    """Return the packages of upstream's plugin interface that a release does not have.

    Where it has no door for plugins nothing can be bound. The lock holds no such release.
    """
    if not isinstance(facts, Resolver) or not isinstance(facts.resolve(PLUGINS), Missing):
        return ()
    spelling = spelled(platform, PLATFORM, facts.version, beyond_claims)
    # The class stands in a module of the package.
    package = spelling.call.rsplit(".", 2)[0] if spelling and spelling.call else PLUGINS
    packages = dict.fromkeys((package, PLUGINS))
    return tuple(p for p in packages if isinstance(facts.resolve(p), Missing))


def member_path(member: Member) -> tuple[str | int, ...]:
    """Return the path, inside the map, of the value that a member hands out."""
    first, _, rest = member.key.partition(".")
    if member.key == "attention_backend":
        return ("factories", "attention_backend", "name")
    if first in ("kv_pool", "quantization"):
        return ("factories", first, rest)
    if first in ("methods", "capabilities", "server_args"):
        return (first, rest) if rest else (first,)
    if first == "device":
        return ("device", rest)
    return ("factories", first)

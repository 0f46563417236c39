"""Documents × release → plan: the bindings that hold, resolved and ordered."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from kunlun_adapt.diagnostics import AdaptError
from kunlun_adapt.documents import (
    Catalog,
    Document,
    OperatorRecipe,
    PlatformMap,
    in_range,
)
from kunlun_adapt.documents.platform_map import EnvironmentVariable, Exclusion, ServerArg
from kunlun_adapt.plan.binding import (
    Binding,
    HookBinding,
    KernelBinding,
    Member,
    ModelBinding,
    ShimBinding,
    Status,
    WarmUp,
    bind_groups,
)
from kunlun_adapt.plan.members import plan_members, spelled
from kunlun_adapt.plan.nearest import nearest_range
from kunlun_adapt.plan.order import ordered
from kunlun_adapt.plan.stated import plan_models, plan_warm_up
from kunlun_adapt.upstream import Facts, Missing, Symbol

PLANNED = "its implementation is still to come"
PROCESS = "process"
"""The interface spells what a process runs as `process.<name>`."""
MAIN = "main"
"""The process that starts the others, and is spelled nowhere."""
OUTSIDE = "targets outside sglang are checked, and not bound yet"

_FORWARDS = ("forward_native", "forward_cuda", "forward_cpu", "forward")


@dataclass(frozen=True, slots=True)
class Plan:
    """What holds for one release and profile. Immutable; `bindings` also lists what is left out.

    `planned_hooks` and `planned_kernels` are resolved like those that are bound, so that their
    claims can be checked; nothing is generated for them.
    """

    release: str
    profile: str
    platform_map: Document[PlatformMap]
    members: tuple[Member, ...]
    hooks: tuple[HookBinding, ...]
    kernels: tuple[KernelBinding, ...]
    operators: tuple[Document[OperatorRecipe], ...]
    shims: tuple[ShimBinding, ...]
    server_args: tuple[ServerArg, ...]
    environment: tuple[EnvironmentVariable, ...]
    bindings: tuple[Binding, ...]
    names: dict[str, Symbol | Missing]
    models: tuple[ModelBinding, ...] = ()
    warm_up: WarmUp | None = None
    planned_hooks: tuple[HookBinding, ...] = ()
    planned_kernels: tuple[KernelBinding, ...] = ()
    without_plugins: frozenset[str] = frozenset()
    """The keys of the processes in which upstream loads no plugins in this release."""

    def binding(self, id: str) -> Binding | None:
        return next((b for b in self.bindings if b.id == id), None)

    def unreached(self) -> list[tuple[HookBinding, str]]:
        """Return the bound hooks for a process of which it is not known what it runs."""
        known = {key for key, symbol in self.names.items() if isinstance(symbol, Symbol)}
        return [
            (hook, process)
            for hook in self.hooks
            for process in hook.hook.process or ()
            if process != MAIN and f"{PROCESS}.{process}" not in known
        ]

    def unresolved(self) -> list[tuple[Binding, Missing]]:
        """Return the bound bindings whose target does not exist in the release."""
        found: list[tuple[Binding, Symbol | Missing | None]] = [
            *((m.binding, m.symbol) for m in self.members),
            *((h.binding, symbol) for h in self.hooks for symbol in (h.symbol, h.readback)),
            *((k.binding, k.symbol) for k in self.kernels),
            *((m.binding, m.registry) for m in self.models),
        ]
        if self.warm_up is not None:
            found += [(self.warm_up.binding, symbol) for _, symbol in self.warm_up.groups]
        return [(binding, symbol) for binding, symbol in found if isinstance(symbol, Missing)]


def make_plan(
    catalog: Catalog, facts: Facts, profile: str = "card", *, beyond_claims: bool = False
) -> Plan:
    """Plan `catalog` for one release.

    `beyond_claims` plans every binding as if it claimed the release: of several ranges the one
    nearest to the release is taken. Raises AdaptError when the workspace has no usable map, or the
    map has no such profile.
    """
    if catalog.platform_map is None:
        raise AdaptError(
            f"no usable {catalog.root.name}/platform_map.yaml", "run kunlun-adapt validate"
        )
    document = catalog.platform_map
    if profile not in document.model.device.profiles:
        known = ", ".join(document.model.device.profiles)
        raise AdaptError(f"the map has no profile {profile!r}", f"choose one of: {known}")
    planner = _Planner(document, catalog, facts, profile, beyond_claims)
    return planner.plan()


class _Planner:
    """Walks the documents once and collects the bindings of one release."""

    def __init__(
        self,
        document: Document[PlatformMap],
        catalog: Catalog,
        facts: Facts,
        profile: str,
        beyond_claims: bool,
    ) -> None:
        self.document = document
        self.map = document.model
        self.entries = catalog.hooks
        self.recipes = catalog.operators
        self.facts = facts
        self.profile = profile
        self.beyond = beyond_claims
        self.bindings: list[Binding] = []

    def plan(self) -> Plan:
        members = plan_members(self.document, self.facts, self.profile, self.beyond)
        self.bindings.extend(m.binding for m in members)
        shims = tuple(self._shims())
        placed = sorted(self._kernels(), key=lambda k: (k.bind.target, k.recipe.model.name))
        kernels = tuple(k for k in placed if k.binding.status == "bound")
        hooked = ordered(self._hooks())
        models = tuple(plan_models(self.document, self.facts, self.beyond))
        self.bindings.extend(m.binding for m in models)
        warm_up, left_cold = plan_warm_up(
            self.document, self.facts, hooked, self.bindings, self.beyond
        )
        self.bindings.extend([left_cold] if left_cold is not None else [])
        used = {k.recipe.model.name for k in kernels}
        operators = tuple(
            r
            for r in self.recipes
            if r.model.name in used or (r.model.serves and r.model.status == "active")
        )
        return Plan(
            release=self.facts.version,
            profile=self.profile,
            platform_map=self.document,
            members=tuple(m for m in members if m.binding.status == "bound"),
            hooks=tuple(h for h in hooked if h.binding.status == "bound"),
            kernels=kernels,
            operators=operators,
            shims=shims,
            server_args=tuple(
                s
                for s in self.map.server_args
                if s.status == "active" and self.profile in s.profiles and self._holds(s.sglang)
            ),
            environment=tuple(
                e
                for e in self.map.environment
                if e.status == "active"
                and e.default is not None
                and self.profile in e.profiles
                and self._holds(e.sglang)
            ),
            bindings=tuple(self.bindings),
            names={
                key: self.facts.resolve(choice.call)
                for key in self.map.interface
                if (choice := spelled(self.map, key, self.facts.version, self.beyond))
                and choice.call
            },
            without_plugins=frozenset(
                key
                for key in self.map.interface
                if (choice := spelled(self.map, key, self.facts.version, self.beyond))
                and not choice.loads_plugins
            ),
            models=tuple(m for m in models if m.binding.status == "bound"),
            warm_up=warm_up,
            planned_hooks=tuple(h for h in hooked if h.binding.status == "planned"),
            planned_kernels=tuple(k for k in placed if k.binding.status == "planned"),
        )

    def _holds(self, specifier: str) -> bool:
        return in_range(specifier, self.facts.version)

    def _choose(self, ranges: list[str]) -> int | None:
        """Return which of a binding's ranges holds; beyond claims, the nearest one stands in."""
        for index, specifier in enumerate(ranges):
            if self._holds(specifier):
                return index
        return nearest_range(ranges, self.facts.version) if self.beyond else None

    def _standing(
        self,
        index: int | None,
        exclusions: Iterable[Exclusion],
        profiles: Sequence[str] = (),
        planned: str | None = None,
    ) -> tuple[Status, str | None]:
        """Return a binding's status in this release and profile, and why it is not bound."""
        for exclusion in exclusions:
            if self._holds(exclusion.sglang):
                return "excluded", exclusion.why
        if profiles and self.profile not in profiles:
            return "excluded", f"for the profile {', '.join(profiles)} only"
        if index is None:
            return "excluded", "it does not claim this release"
        return ("planned", planned) if planned is not None else ("bound", None)

    def _shims(self) -> Iterable[ShimBinding]:
        for i, shim in enumerate(self.map.shims):
            planned = PLANNED if shim.status == "planned" else None
            status, reason = self._standing(self._choose([shim.sglang]), (), shim.profiles, planned)
            binding = Binding(
                id=f"shim/{shim.module}",
                kind="shim",
                family="shim",
                target=shim.module,
                status=status,
                why=shim.why,
                required=shim.required,
                claims=shim.sglang,
                position=self.document.at("shims", i, "module"),
                served=shim.served.simulator if shim.served else None,
                served_why=shim.served.why if shim.served else None,
                status_why=reason,
            )
            self.bindings.append(binding)
            if binding.status == "bound":
                yield ShimBinding(binding, shim)

    def _hooks(self) -> Iterable[HookBinding]:
        for entry in self.entries:
            hook = entry.hook
            index = self._choose([a.sglang for a in hook.at])
            at = hook.at[index] if index is not None else None
            planned = PLANNED if hook.status == "planned" else None
            if at is not None and (at.provided_by or at.package):
                planned = planned or OUTSIDE
            status, reason = self._standing(index, hook.excluded, hook.profiles, planned)
            path: tuple[str | int, ...] = (*entry.path, "at", index or 0)
            binding = Binding(
                id=hook.id,
                kind="hook",
                family=hook.family,
                target=at.target if at else hook.at[-1].target,
                status=status,
                why=hook.why,
                required=hook.required and hook.on_missing == "error",
                claims=" | ".join(a.sglang for a in hook.at),
                position=entry.document.at(*path, "target"),
                served=hook.served.simulator if hook.served else None,
                served_why=hook.served.why if hook.served else None,
                status_why=reason,
            )
            if status != "excluded" and at is not None:
                # What is added must not be there; what has to exist is what it is added to.
                asked = at.target.rpartition(".")[0] if hook.type == "add" else at.target
                symbol = self.facts.resolve(asked)
                if isinstance(symbol, Missing) and hook.on_missing == "skip":
                    absent = replace(
                        binding, status="excluded", status_why="upstream lacks it: on_missing: skip"
                    )
                    self.bindings.append(absent)
                    continue
                shows = self.facts.resolve(at.readback.target) if at.readback else None
                self._watch([*hook.watch, *at.watch])
                yield HookBinding(binding, entry.document, hook, at, path, symbol, shows)
            self.bindings.append(binding)

    def _kernels(self) -> Iterable[KernelBinding]:
        for recipe in self.recipes:
            for id, indexes in bind_groups(recipe.model).items():
                yield from self._kernel(recipe, id, indexes)
            for i, served in enumerate(recipe.model.serves):
                self.bindings.append(self._own(recipe, i, served))

    def _kernel(
        self, recipe: Document[OperatorRecipe], id: str, indexes: list[int]
    ) -> Iterable[KernelBinding]:
        binds = [recipe.model.binds[i] for i in indexes]
        chosen = self._choose([b.sglang for b in binds])
        bind = binds[chosen] if chosen is not None else binds[-1]
        place = indexes[chosen] if chosen is not None else indexes[-1]
        planned = PLANNED if "planned" in (recipe.model.status, bind.status) else None
        if bind.provided_by or bind.package:
            planned = planned or OUTSIDE
        elif bind.style == "launcher":
            planned = planned or "launchers are checked, and not bound yet"
        exclusions = [e for b in binds for e in b.excluded]
        status, reason = self._standing(chosen, exclusions, planned=planned)
        served = bind.served or recipe.model.served
        path: tuple[str | int, ...] = ("binds", place)
        binding = Binding(
            id=id,
            kind="kernel",
            family=recipe.model.family,
            target=bind.target,
            status=status,
            why=recipe.model.why,
            required=bind.required,
            claims=" | ".join(b.sglang for b in binds),
            position=recipe.at(*path, "target"),
            served=served.simulator if served else None,
            served_why=served.why if served else None,
            status_why=reason,
        )
        self.bindings.append(binding)
        if binding.status != "excluded":
            symbol = self.facts.resolve(bind.target)
            self._watch(bind.watch)
            call = symbol
            if bind.style == "oot_forward" and isinstance(symbol, Symbol):
                call = forward_called(self.facts, bind.target)
            yield KernelBinding(binding, recipe, bind, path, symbol, call)

    def _watch(self, paths: Iterable[str]) -> None:
        """Ask for what is watched, so that the lock, which holds what is asked for, has it."""
        for path in paths:
            self.facts.resolve(path)

    def _own(self, recipe: Document[OperatorRecipe], index: int, served: str) -> Binding:
        """An operator that only our own classes call: bound through the factory that it serves."""
        says = recipe.model.served
        return Binding(
            id=f"{recipe.model.name}/{served}",
            kind="kernel",
            family=recipe.model.family,
            target=f"factory:{served}",
            status="bound" if recipe.model.status == "active" else "planned",
            why=recipe.model.why,
            required=True,
            claims=self.map.sglang,
            position=recipe.at("serves", index),
            served=says.simulator if says else None,
            served_why=says.why if says else None,
            status_why=None if recipe.model.status == "active" else PLANNED,
        )


def forward_called(facts: Facts, target: str) -> Symbol | Missing:
    """Return the forward whose signature a registered forward is called with.

    Upstream calls what is registered with the arguments of `forward`, which is only
    `(*args, **kwargs)`; the class's own forwards all share one signature.
    """
    found = facts.resolve(f"{target}.{_FORWARDS[0]}")
    for name in _FORWARDS:
        candidate = facts.resolve(f"{target}.{name}")
        if isinstance(candidate, Symbol) and candidate.signature:
            kinds = {p.kind for p in candidate.signature.parameters[1:]}
            if kinds - {"var_positional", "var_keyword"}:
                return candidate
    return found

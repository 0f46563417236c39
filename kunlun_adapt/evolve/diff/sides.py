"""The two releases that are compared, each as the workspace sees it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from kunlun_adapt.check import Context
from kunlun_adapt.diagnostics import Finding, Position
from kunlun_adapt.documents import Catalog, PlatformMap
from kunlun_adapt.evolve.diff.records import Place, Risk
from kunlun_adapt.evolve.diff.subjects import Key, Subject, bindings_of, subjects
from kunlun_adapt.plan import Binding, make_plan
from kunlun_adapt.upstream import Lock, Symbol
from kunlun_adapt.upstream.following import FollowingResolver
from kunlun_adapt.upstream.inventory import Table, inventory


@dataclass(frozen=True, eq=False)
class Side:
    """One release: its facts, and the workspace as if it claimed the release."""

    resolver: FollowingResolver
    context: Context

    @classmethod
    def of(
        cls,
        catalog: Catalog,
        lock: Lock,
        resolver: FollowingResolver,
        source: str | None = None,
        workspace: str | None = None,
    ) -> Side:
        """Plan the workspace for a release, beyond its claims. Needs a map that loads."""
        document = catalog.platform_map
        assert document is not None, "a workspace without a map is refused before"
        plans = tuple(
            make_plan(catalog, resolver, profile, beyond_claims=True)
            for profile in document.model.device.profiles
        )
        context = Context(catalog, document, resolver, plans, lock, True, source, workspace)
        return cls(resolver, context)

    @property
    def release(self) -> str:
        return self.resolver.version

    @cached_property
    def subjects(self) -> dict[Key, Subject]:
        return subjects(self.context)

    @cached_property
    def bindings(self) -> dict[str, Binding]:
        return bindings_of(self.context)

    def table(self, name: str) -> Table:
        """One table of what the release offers by name."""
        return inventory(self.resolver, name)

    def text(self, symbol: Symbol) -> str | None:
        return self.resolver.text(symbol.path)


@dataclass(frozen=True, eq=False)
class Sides:
    """The old and the new release, and what `validate` finds in the new one."""

    old: Side
    new: Side
    findings: tuple[Finding, ...]

    @property
    def map(self) -> PlatformMap:
        return self.new.context.map

    @cached_property
    def landing_points(self) -> dict[str, tuple[str, ...]]:
        """The map's landing points by the binding that they name."""
        found: dict[str, list[str]] = {}
        for point in self.map.landing_points:
            for binding in point.bindings:
                found.setdefault(binding, []).append(point.feature)
        return {binding: tuple(features) for binding, features in found.items()}

    def features(self, bindings: tuple[str, ...]) -> tuple[str, ...]:
        points = [f for binding in bindings for f in self.landing_points.get(binding, ())]
        return tuple(dict.fromkeys(points))

    def about(self, bindings: tuple[str, ...], *targets: str) -> tuple[Finding, ...]:
        """Return what is found about some bindings, or at some upstream paths."""
        return tuple(f for f in self.findings if f.binding in bindings or f.target in targets)

    def status(self, bindings: tuple[str, ...]) -> str:
        """Return the best standing that one of the bindings has in the new release."""
        standing = {self.new.bindings[b].status for b in bindings if b in self.new.bindings}
        return next((s for s in ("bound", "planned", "excluded") if s in standing), "unbound")


def stated(position: Position) -> str:
    """Return the document and the line in which something is stated."""
    return f"{position.file}:{position.line}"


def place(symbol: Symbol) -> Place:
    return Place(symbol.resolved, symbol.location.file, symbol.location.line)


def at_least(risk: Risk, other: Risk) -> Risk:
    """Return the graver of two risks."""
    return min(risk, other, key=lambda r: r.rank)

"""What the rules about upstream's own uses of a target share: which targets, which uses count."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kunlun_adapt.check.context import Context
from kunlun_adapt.check.processes import entry
from kunlun_adapt.check.targets import UPSTREAM, bound
from kunlun_adapt.diagnostics import Finding
from kunlun_adapt.documents import Bind, HookAt
from kunlun_adapt.plan import HookBinding, KernelBinding
from kunlun_adapt.upstream import Location, Symbol
from kunlun_adapt.upstream.guards import holds

if TYPE_CHECKING:
    from kunlun_adapt.upstream import Index, Reference

PROCESSES = ("main", "scheduler", "detokenizer", "tokenizer", "dp_controller")
FEW_PLACES = 6
DEVICE = "cuda"
"""What a card reports as: branches for other devices do not run."""

MEMBERS = ("method", "classmethod", "staticmethod", "property")


@dataclass(frozen=True, slots=True)
class Site:
    """A bound target of which upstream's uses are looked at; `how` is a hook type or bind style."""

    item: HookBinding | KernelBinding
    at: HookAt | Bind
    symbol: Symbol
    how: str

    @property
    def id(self) -> str:
        return self.item.binding.id

    @property
    def is_kernel(self) -> bool:
        return isinstance(self.item, KernelBinding)

    @property
    def owner(self) -> str:
        """The class of a member, empty for anything else."""
        return self.symbol.path.rpartition(".")[0] if self.symbol.kind in MEMBERS else ""

    @property
    def repaired(self) -> tuple[str, ...]:
        """The references that the binding repairs itself."""
        return tuple(self.item.hook.repair) if isinstance(self.item, HookBinding) else ()

    @property
    def names(self) -> tuple[str, ...]:
        """The paths of the target itself: as the binding names it, and where it is defined."""
        return self.at.target, self.symbol.path, self.symbol.resolved

    def repair_with(self, names: Iterable[str]) -> str:
        """Return the whole `repair` that the binding would have with more references."""
        kept = [name for name in self.repaired if name != self.at.target]
        added = [name for name in names if name not in self.names]
        return f"`repair: [{', '.join(dict.fromkeys([*kept, *added]))}]`"


@dataclass(frozen=True, eq=False)
class UseSites:
    """The sites of one check, and what the index says of them."""

    context: Context
    index: Index
    sites: tuple[Site, ...]
    _early: dict[str, frozenset[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, context: Context, index: Index) -> UseSites:
        """Collect the targets in the release; those of other packages have no uses here."""
        sites = tuple(_sites(context))
        index.expect([s.symbol.path for s in sites] + [s.owner for s in sites if s.owner])
        return cls(context, index, sites)

    def references(self, site: Site) -> tuple[Reference, ...]:
        """The uses of a target in the code that serves: upstream's own tests are left out."""
        return tuple(
            item
            for item in self.index.references(site.symbol.path)
            if not is_test(item.module) and holds(item.guard, DEVICE) is not False
        )

    def calls(self, site: Site) -> tuple[Reference, ...]:
        """The calls that reach a target: of a member also those on instances."""
        found = [item for item in self.references(site) if item.call and item.kind != "decorator"]
        if site.owner:
            calls = self.index.method_calls(site.owner, site.symbol.name)
            found = [item for item in calls if not is_test(item.module)]
        return tuple(found)

    def too_early(self, site: Site) -> tuple[Reference, ...]:
        """The uses that run on import before the target can be patched.

        A kernel is patched when its module has been imported whole, so only that module's own
        uses are too early. A hook is patched when the process loads plugins: what the process has
        imported by then is read off its entry's imports.
        """
        early = {site.symbol.module} if site.is_kernel else self._loaded(site)
        return tuple(i for i in self.references(site) if i.on_import and i.module in early)

    def imported_early(self, module: str, site: Site) -> bool:
        """Whether a module is imported before a hook is applied."""
        return module in self._loaded(site)

    def _loaded(self, site: Site) -> frozenset[str]:
        assert isinstance(site.item, HookBinding)
        names = tuple(site.item.hook.process or PROCESSES)
        loaded = {site.symbol.module}
        for name in names:
            if name not in self._early:
                start = entry(self.context, name)
                self._early[name] = (
                    frozenset() if start is None else self.index.loaded_with(start.module)
                )
            loaded |= self._early[name]
        return frozenset(loaded)

    def finding(
        self,
        code: str,
        site: Site,
        message: str,
        places: Sequence[Location],
        suggestion: str,
    ) -> Finding:
        """Make a finding at the target of a binding, with the first of the upstream places."""
        return Finding.of(
            code,
            message,
            site.item.binding.position,
            binding=site.id,
            target=site.at.target,
            upstream=places[0] if places else site.symbol.location,
            suggestion=suggestion,
        )


def _sites(context: Context) -> Iterator[Site]:
    for item in bound(context):
        if item.at.provided_by or item.at.package or item.at.target.split(".")[0] != UPSTREAM:
            continue
        binding = item.binding
        how = binding.hook.type if isinstance(binding, HookBinding) else binding.bind.style
        if item.symbol.kind not in ("module", "lazy", "external"):
            yield Site(binding, item.at, item.symbol, how)


def is_test(module: str) -> bool:
    """Whether a module belongs to upstream's tests, which no server imports."""
    parts = module.split(".")
    return any(part in ("test", "tests") or part.startswith("test_") for part in parts)


def listed(places: Sequence[Location]) -> str:
    """The places in a sentence: the first few, and how many more there are."""
    texts = list(dict.fromkeys(str(place) for place in places))
    shown = texts[:FEW_PLACES]
    more = len(texts) - len(shown)
    if more:
        return f"{', '.join(shown)} and {more} more"
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if shown[1:] else shown)

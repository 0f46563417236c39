"""KA117: upstream reads the target while it imports, before the binding acts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kunlun_adapt.check.context import Context
from kunlun_adapt.check.usage import usage_findings
from kunlun_adapt.check.use_sites import DEVICE, Site, UseSites, is_test, listed
from kunlun_adapt.diagnostics import Finding
from kunlun_adapt.plan import HookBinding
from kunlun_adapt.upstream import Location
from kunlun_adapt.upstream.guards import holds

VALUES = ("constant", "attribute")
ADDITIVE = ("extend", "register")
"""Hooks of these types change an object in place: who holds it sees the change."""


def rule(context: Context) -> Iterable[Finding]:
    """Report targets that upstream reads before the binding acts."""
    return (finding for finding in usage_findings(context) if finding.code == "KA117")


def search(sites: UseSites) -> Iterator[Finding]:
    """Report calls of a target on import, and copies of a constant that imports take."""
    for site in sites.sites:
        if site.how in ADDITIVE or site.how == "oot_forward":
            continue
        places = _copies(sites, site) if site.symbol.kind in VALUES else _calls(sites, site)
        if places:
            done = "copied" if site.symbol.kind in VALUES else "called"
            when = "when its module is imported" if site.is_kernel else "when plugins are loaded"
            yield sites.finding(
                "KA117",
                site,
                f"{site.symbol.name} is {done} on import in {listed(places)}, and {site.id} acts "
                f"only {when}",
                places,
                _suggestion(sites, site, places),
            )


def _calls(sites: UseSites, site: Site) -> list[Location]:
    kinds = ("call", "launch")
    found = [r.location for r in sites.too_early(site) if r.kind in kinds]
    return list(dict.fromkeys(found))


def _copies(sites: UseSites, site: Site) -> list[Location]:
    """Where the value ends up: names of other modules, and what is computed from it on import."""
    if not isinstance(site.item, HookBinding):
        return []
    found: dict[Location, str] = {}
    for item in sites.index.importers(site.symbol.path):
        early = sites.imported_early(item.module, site) and not is_test(item.module)
        if item.scope or item.type_checking or not early or holds(item.guard, DEVICE) is False:
            continue
        if f"{item.module}.{item.name}" not in (*site.repaired, *site.names):
            found[item.location] = item.module
    for reference in sites.too_early(site):
        held = f"{reference.module}.{reference.within}"
        if reference.kind != "annotation" and held not in (*site.repaired, *site.names):
            found[reference.location] = reference.module
    return list(found)


def _suggestion(sites: UseSites, site: Site, places: list[Location]) -> str:
    if site.symbol.kind not in VALUES:
        return "bind what uses the result, or accept it with the reason why the old result will do"
    names = [
        f"{item.module}.{item.name}"
        for item in sites.index.importers(site.symbol.path)
        if item.location in places
    ]
    if not names:
        return "bind what was computed from it as well"
    return f"repair the copies: {site.repair_with(names)}"

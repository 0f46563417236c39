"""KA118: something holds the target where patching its name does not reach."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from kunlun_adapt.check.context import Context
from kunlun_adapt.check.usage import usage_findings
from kunlun_adapt.check.use_sites import DEVICE, Site, UseSites, is_test, listed
from kunlun_adapt.diagnostics import Finding
from kunlun_adapt.plan import HookBinding
from kunlun_adapt.upstream import Location
from kunlun_adapt.upstream.guards import holds

if TYPE_CHECKING:
    from kunlun_adapt.upstream import Reference

WORDS = {
    "container": "held in {name}",
    "partial": "wrapped in a partial",
    "class_attribute": "held as the class attribute {name}",
    "default": "a default argument",
    "decorator": "used as a decorator",
    "alias": "also called {name}",
    "argument": "passed on",
    "subclass": "the base of {name}",
}
NOT_OBJECTS = ("constant", "attribute")
"""What a value is used for on import is the matter of another rule."""

IN_PLACE = ("extend", "register", "add", "oot_forward")
"""These change nothing that a reference could miss."""


def rule(context: Context) -> Iterable[Finding]:
    """Report references to a target that stay upstream's own."""
    return (finding for finding in usage_findings(context) if finding.code == "KA118")


def search(sites: UseSites) -> Iterator[Finding]:
    """Report each binding whose original stays in use, with the places that hold it."""
    for site in sites.sites:
        if site.symbol.kind in NOT_OBJECTS or site.how in IN_PLACE:
            continue
        found: dict[str, list[Location]] = {}
        for reference in sites.too_early(site):
            if _holds(reference, site) and not _repaired(reference, site):
                said = WORDS[reference.kind].format(name=reference.within or "a literal")
                found.setdefault(said, []).append(reference.location)
        for place in _copies(sites, site):
            found.setdefault("imported by name", []).append(place)
        if found:
            places = [place for group in found.values() for place in group]
            said = "; ".join(f"{how} in {listed(group)}" for how, group in found.items())
            yield sites.finding(
                "KA118",
                site,
                f"{site.symbol.name} is {said}, and what stands there stays upstream's own",
                places,
                _suggestion(sites, site),
            )


def _holds(reference: Reference, site: Site) -> bool:
    if reference.kind == "subclass":
        # Only where the class itself is replaced does a base stay the old one.
        return site.symbol.kind == "class" and site.how in ("replace", "set")
    if f"{reference.module}.{reference.within}" in site.names:
        return False  # the very name that is bound
    if reference.kind == "alias":
        # HookRegistry rewrites the names of modules; a kernel's or a set one's own module does not.
        return (site.is_kernel or site.how == "set") and "." not in reference.within
    return reference.kind in WORDS


def _repaired(reference: Reference, site: Site) -> bool:
    scope = f"{reference.module}.{reference.scope}".rstrip(".")
    held = f"{scope}.{reference.within}" if reference.within else scope
    return held in site.repaired


def _copies(sites: UseSites, site: Site) -> Iterator[Location]:
    """The imports by name that a `set` hook leaves as they are."""
    if not isinstance(site.item, HookBinding) or site.how != "set":
        return
    for item in sites.index.importers(site.symbol.path):
        early = sites.imported_early(item.module, site) and not is_test(item.module)
        if early and not item.scope and not item.type_checking:
            live = holds(item.guard, DEVICE) is not False
            if live and f"{item.module}.{item.name}" not in (*site.repaired, *site.names):
                yield item.location


def _suggestion(sites: UseSites, site: Site) -> str:
    if site.is_kernel:
        return "bind that name as well, or accept it with the reason why the original will do there"
    names = [
        f"{r.module}.{f'{r.scope}.' if r.scope else ''}{r.within}"
        for r in sites.too_early(site)
        if _holds(r, site) and r.within and not _repaired(r, site)
    ]
    names += [
        f"{item.module}.{item.name}"
        for item in sites.index.importers(site.symbol.path)
        if item.location in set(_copies(sites, site))
    ]
    if not names:
        return "bind what uses it there, or accept it with the reason why the original will do"
    return f"repair them: {site.repair_with(names)}"

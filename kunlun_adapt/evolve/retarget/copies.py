"""Values that upstream copies while it imports: a hook that sets the original then changes none."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from kunlun_adapt.check import Context
from kunlun_adapt.check.rules.import_time_value import search
from kunlun_adapt.check.use_sites import DEVICE, Site, UseSites, is_test
from kunlun_adapt.diagnostics import Finding
from kunlun_adapt.documents import in_range
from kunlun_adapt.evolve.retarget.parts import Part, merged
from kunlun_adapt.evolve.retarget.work import Work
from kunlun_adapt.plan import HookBinding
from kunlun_adapt.upstream import Symbol
from kunlun_adapt.upstream.following import FollowingResolver
from kunlun_adapt.upstream.guards import holds

CODE = "KA117"


def ask_who_copies(
    works: Iterable[Work],
    context_of: Callable[[str], Context],
    releases: Iterable[FollowingResolver],
) -> None:
    """Let what sets a value be proposed where upstream has copied it before, in any release.

    What is added to or extended is the same object for all who hold it. `releases` are all that
    the repair of the copies would act in: it has no range of its own.
    """
    for work in works:
        group, item = work.group, work.group.entry.item
        if not isinstance(item, HookBinding) or item.hook.type != "set":
            continue
        target = merged(work.parts)[0].get("target")
        if target is not None:
            part = _at(work, item, str(target), context_of, [*releases])
        elif not in_range(group.own, group.way[-1].version):
            part = next((_part(f) for f in work.blocked if f.code == CODE), None)
        else:
            continue  # nothing is edited, and what is said of it is listed
        if part is not None:
            work.parts.append(part)
            work.blocked = [f for f in work.blocked if f.code != CODE]


def _at(
    work: Work,
    item: HookBinding,
    target: str,
    context_of: Callable[[str], Context],
    releases: list[FollowingResolver],
) -> Part | None:
    """Return what is to be said of a new target, with the repair where that leaves no copy."""
    told: Finding | None = None
    names: dict[str, None] = {}
    for release in reversed(work.group.way[1:]):
        context = context_of(release.version)
        symbol = context.facts.resolve(target)
        if not isinstance(symbol, Symbol) or context.index is None:
            continue
        at = item.at.model_copy(update={"target": target})
        site = Site(item, at, symbol, item.hook.type)
        sites = UseSites(context, context.index, (site,))
        found = next(search(sites), None)
        if found is None:
            continue
        told = told or found
        names |= dict.fromkeys(_copies(sites, site))
        hook = item.hook.model_copy(update={"repair": [*item.hook.repair, *names]})
        repaired = replace(site, item=replace(item, hook=hook))
        if next(search(UseSites(context, context.index, (repaired,))), None) is not None:
            return _part(told)  # something was computed from it
    if told is None:
        return None
    paths = (str(work.group.entry.stated.get("target")), target)
    held = all(_is_held(release, name, paths) for release in releases for name in names)
    return _part(told, tuple(names) if held else ())


def _part(found: Finding, repair: tuple[str, ...] = ()) -> Part:
    evidence = (found.suggestion,) if found.suggestion and not repair else ()
    return Part("likely", CODE, found.message, evidence=evidence, repair=repair)


def _copies(sites: UseSites, site: Site) -> list[str]:
    """Return the names that modules give to the value while they are imported."""
    names = {
        f"{i.module}.{i.name}"
        for i in sites.index.importers(site.symbol.path)
        if not (i.scope or i.type_checking or is_test(i.module))
        and sites.imported_early(i.module, site)
        and holds(i.guard, DEVICE) is not False
    }
    return sorted(names - {*site.names, *site.repaired})


def _is_held(release: FollowingResolver, name: str, paths: tuple[str, ...]) -> bool:
    """Tell whether a name stands for what a hook sets in a release: any other repair would fail."""
    copy, found = release.resolve(name), [release.resolve(path) for path in paths]
    return isinstance(copy, Symbol) and copy.resolved in {
        symbol.resolved for symbol in found if isinstance(symbol, Symbol)
    }

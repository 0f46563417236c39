"""Which processes load plugins in each release."""

from __future__ import annotations

from collections.abc import Iterator

from kunlun_adapt.check.processes import entry, loads_plugins
from kunlun_adapt.evolve.diff.records import Change, Fact, Place, Risk
from kunlun_adapt.evolve.diff.sides import Sides, place, stated
from kunlun_adapt.plan import PROCESS, spelled
from kunlun_adapt.upstream.inventory import Item


def process_changes(sides: Sides) -> Iterator[Change]:
    """Yield the processes that begin or cease to load plugins, and new places that load them."""
    old, new = sides.old.table("plugin_loaders"), sides.new.table("plugin_loaders")
    told: set[str] = set()
    for key in sides.map.interface:
        process = key.removeprefix(f"{PROCESS}.")
        if process == key:
            continue
        before = loads_plugins(sides.old.context, process)
        after = loads_plugins(sides.new.context, process)
        start, was = entry(sides.new.context, process), entry(sides.old.context, process)
        told |= {symbol.resolved for symbol in (start, was) if symbol is not None}
        if before is after or None in (before, after):
            continue
        text = f"the {process} loads plugins now" if after else f"the {process} no longer does"
        spelling = spelled(sides.map, key, sides.new.release, True)
        followed = spelling is not None and spelling.loads_plugins is after
        index = sides.map.interface[key].index(spelling) if spelling is not None else 0
        yield Change(
            id=f"process/{process}",
            landing="process",
            subject=process,
            risk=Risk.MEDIUM if after or followed else Risk.HIGH,
            facts=(Fact("plugins", text),),
            old=place(was) if was else None,
            new=place(start) if start else None,
            status="bound",
            followed=followed,
            stated=stated(sides.new.context.document.at("interface", key, index)),
        )
    for path in sorted(old.keys() ^ new.keys()):
        if path in told:
            continue
        text = "loads plugins now" if path in new else "does not load plugins any more"
        yield Change(
            id=f"process/{path}",
            landing="process",
            subject=path,
            risk=Risk.LOW if path in new else Risk.MEDIUM,
            facts=(Fact("plugins", text),),
            old=_place(path, old.get(path)),
            new=_place(path, new.get(path)),
        )


def _place(path: str, item: Item | None) -> Place | None:
    at = item.location if item is not None else None
    return None if at is None else Place(path, at.file, at.line)

"""Targets that nothing in the new release uses any more: these are not carried, but left out."""

from __future__ import annotations

from collections.abc import Iterable

from kunlun_adapt.check import Context
from kunlun_adapt.diagnostics import ItemChange
from kunlun_adapt.evolve.retarget.alive import Alive
from kunlun_adapt.evolve.retarget.holding import symbol_of
from kunlun_adapt.evolve.retarget.parts import Part, merged
from kunlun_adapt.evolve.retarget.work import Work
from kunlun_adapt.plan import WRAPPING, HookBinding
from kunlun_adapt.upstream import Symbol
from kunlun_adapt.upstream.following import FollowingResolver

SHOWN = 3
WHOLE = 500
"""Of fewer modules than these nothing is told by what had no users before either."""
_RUNS = (
    "function",
    "async_function",
    "cached_function",
    "triton_kernel",
    "custom_op",
    "method",
    "classmethod",
    "staticmethod",
    "class",
)


def ask_who_uses(works: Iterable[Work], context: Context) -> None:
    """Find out which targets nothing in the new release runs, and from which release on."""
    new = context.reader
    if not isinstance(new, FollowingResolver):
        return
    asked = [
        (work, symbol)
        for work in works
        if len(work.group.way) > 1 and (symbol := _target(work, context)) is not None
    ]
    alive: dict[FollowingResolver, Alive] = {new: Alive(new)}
    dead = alive[new].dead([symbol for _, symbol in asked])
    unused = [(work, symbol) for work, symbol in asked if symbol.path in dead]
    since = {id(work): new.version for work, _ in unused}
    last: dict[int, tuple[FollowingResolver, Symbol]] = {}
    for release in sorted({r for work, _ in unused for r in work.group.way[:-1]}, key=_order)[::-1]:
        there = {
            id(work): found
            for work, symbol in unused
            if release in work.group.way and id(work) not in last
            for found in [_earlier(work, symbol, release)]
            if found is not None
        }
        alive[release] = Alive(release)
        gone = alive[release].dead(there.values())
        for key, found in there.items():
            if found.path not in gone:
                last[key] = (release, found)
            elif release.version != _work(unused, key).group.way[0].version:
                since[key] = release.version
    for work, symbol in unused:
        had = last.get(id(work))
        if had is None and len(new.index.modules) < WHOLE:
            continue
        users = alive[had[0]].users(had[1]) if had is not None else ()
        work.unused = _part(work, symbol, since[id(work)], had and had[0].version, users)


def _order(release: FollowingResolver) -> list[int]:
    return [int(part) for part in release.version.split(".") if part.isdigit()]


def _work(unused: Iterable[tuple[Work, Symbol]], key: int) -> Work:
    return next(work for work, _ in unused if id(work) == key)


def _target(work: Work, context: Context) -> Symbol | None:
    """Return what an entry with its edits is about, where it is something that is run."""
    entry, item = work.group.entry, work.group.entry.item
    # A value or a list is read in more ways than a call names what it calls.
    if item is None or (isinstance(item, HookBinding) and item.hook.type not in WRAPPING):
        return None
    symbol = symbol_of(context, entry, entry.with_values(merged(work.parts)[0]))
    return symbol if symbol is not None and symbol.kind in _RUNS else None


def _earlier(work: Work, symbol: Symbol, release: FollowingResolver) -> Symbol | None:
    """Return what the entry was about in an older release: under its new path, or its own."""
    for path in (symbol.path, str(work.group.entry.stated.get("target"))):
        found = release.resolve(path)
        if isinstance(found, Symbol):
            return found
    return None


def _part(work: Work, symbol: Symbol, since: str, last: str | None, users: Iterable[str]) -> Part:
    says = f"nothing in upstream calls {symbol.path} any more"
    if last is None:
        says = f"nothing in upstream calls {symbol.path}, nor did in {work.group.way[0].version}"
    listed = list(users)
    more = f" and {len(listed) - SHOWN} more" if len(listed) > SHOWN else ""
    evidence = (f"its last users, in sglang {last}: {', '.join(listed[:SHOWN])}{more}",)
    item = None
    if work.group.leaves_out is not None:
        file, document, _ = work.group.entry.place
        said = {"sglang": f">={since}", "why": "nothing in upstream calls it any more"}
        item = ItemChange(file, document, work.group.leaves_out, said)
    return Part("likely", "", says, item=item, evidence=evidence if last else ())

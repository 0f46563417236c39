"""The ranged entries of a workspace, and which of them speaks for a release."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from packaging.version import Version

from kunlun_adapt.check import Context
from kunlun_adapt.check.ranges import Ranges, ranged
from kunlun_adapt.diagnostics import Position
from kunlun_adapt.diagnostics.mend import Path
from kunlun_adapt.documents import in_range
from kunlun_adapt.documents.fields import ANY
from kunlun_adapt.evolve.retarget.holding import Entry, Item, Place
from kunlun_adapt.plan.nearest import nearest_range
from kunlun_adapt.upstream.following import FollowingResolver


@dataclass(frozen=True, slots=True)
class Group:
    """One binding or key of the interface: the entry that speaks for the new release, and others.

    `way` are the releases from the newest one that the entry is known to hold for to the new one.
    """

    name: str
    binding: str | None
    entry: Entry
    own: str
    others: tuple[str, ...]
    excluded: tuple[str, ...]
    position: Position
    way: tuple[FollowingResolver, ...]
    leaves_out: Path | None = None
    outside: bool = False
    """Whether what it binds is no part of SGLang."""

    @property
    def followed(self) -> bool:
        """Whether it is to be carried: it holds for a known release, or for the new one already.

        What is left out of the newest releases was left out for a reason.
        """
        if self.outside:
            return False
        return len(self.way) > 1 or in_range(self.own, self.way[-1].version)


def groups_of(
    context: Context, known: tuple[FollowingResolver, ...], between: tuple[FollowingResolver, ...]
) -> Iterator[Group]:
    """Yield the groups that are not left out of the new release, that of the context.

    `known` are older releases that can be looked at, oldest first, `between` those that follow
    them and come before the new one.
    """
    new = context.reader
    assert isinstance(new, FollowingResolver)
    items = _items(context)
    for group in ranged(context):
        if any(in_range(text, context.release) for text in group.excluded):
            continue
        texts = [text for text, _ in group.ranges]
        here = next((i for i, text in enumerate(texts) if in_range(text, context.release)), None)
        index = here if here is not None else nearest_range(texts, context.release)
        if index is None:
            continue
        raw = group.document.raw
        place: Place = (raw.file, raw.index, group.paths[index])
        stated = _stated(raw.data, group.paths[index])
        key = str(group.paths[index][1]) if group.binding is None else None
        entry = Entry(place, items.get(place), key, stated)
        if group.binding is not None and entry.item is None:
            continue  # left out for another reason, such as a profile
        yield Group(
            name=group.binding or f"interface.{key}",
            binding=group.binding,
            entry=entry,
            own=str(stated.get("sglang", ANY)),
            others=tuple(text for i, text in enumerate(texts) if i != index),
            excluded=group.excluded,
            position=raw.at(*group.paths[index]),
            way=_way(group, texts[index], known, between, new),
            leaves_out=group.leaves_out,
            outside="provided_by" in stated or "package" in stated,
        )


def _way(
    group: Ranges,
    own: str,
    known: tuple[FollowingResolver, ...],
    between: tuple[FollowingResolver, ...],
    new: FollowingResolver,
) -> tuple[FollowingResolver, ...]:
    """Return the releases to go through: the newest known one that the entry claims comes first.

    An entry for none of them, as a step that was not claimed leaves it, is known where it begins.
    """
    here = Version(new.version)

    def inside(releases: Iterable[FollowingResolver]) -> list[FollowingResolver]:
        return [r for r in releases if Version(r.version) < here and in_range(own, r.version)]

    older = inside(known) or inside(between)[:1]
    older = [r for r in older if not any(in_range(e, r.version) for e in group.excluded)]
    if not older:
        return (new,)
    start = older[-1]
    every = {r.version: r for r in (*known, *between)}
    later = [r for r in every.values() if Version(start.version) < Version(r.version) < here]
    return (start, *sorted(later, key=lambda r: Version(r.version)), new)


def _items(context: Context) -> dict[Place, Item]:
    found: dict[Place, Item] = {}
    for hook in context.hooks:
        found[hook.document.raw.file, hook.document.raw.index, hook.path] = hook
    for kernel in context.kernels:
        found[kernel.recipe.raw.file, kernel.recipe.raw.index, kernel.path] = kernel
    return found


def _stated(data: Any, path: tuple[str | int, ...]) -> Mapping[str, Any]:
    for step in path:
        data = data[step]
    assert isinstance(data, dict)
    return data

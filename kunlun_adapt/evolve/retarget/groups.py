"""The ranged entries of a workspace, and which of them speaks for a release."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from packaging.version import Version

from kunlun_adapt.check import Context
from kunlun_adapt.check.ranges import Ranges, ranged
from kunlun_adapt.diagnostics import Position
from kunlun_adapt.diagnostics.mend import Path
from kunlun_adapt.documents import in_range
from kunlun_adapt.documents.fields import ANY
from kunlun_adapt.evolve.retarget.holding import Entry, Item, Place
from kunlun_adapt.plan import CAPABILITIES, spelled
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
    versions = [r.version for r in (*known, *between, new)]
    for group in ranged(context):
        group = group if group.binding is not None else _with_left(context, group, versions)
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


def _with_left(context: Context, group: Ranges, versions: Iterable[str]) -> Ranges:
    """Return the group of a key with the ranges in which the map leaves it as upstream has it.

    They are to a key what `excluded` is to a binding. A member may be left by its own name too.
    What is spelled and left for one release is merely not given: its spelling goes on.
    """
    key = str(group.paths[0][1])
    names: set[str | None] = {
        key,
        key.removeprefix("methods."),
        key.removeprefix(f"{CAPABILITIES}."),
    }
    spelling = spelled(context.map, key, context.release, beyond=True)
    names |= {spelling.method or spelling.field} if spelling is not None else set()
    own = [v for v in versions if any(in_range(text, v) for text, _ in group.ranges)]
    left = [e.sglang for e in context.map.left_at_default if e.member in names]
    left = [text for text in left if not any(in_range(text, v) for v in own)]
    return replace(group, excluded=tuple(left))


def _way(
    group: Ranges,
    own: str,
    known: tuple[FollowingResolver, ...],
    between: tuple[FollowingResolver, ...],
    new: FollowingResolver,
) -> tuple[FollowingResolver, ...]:
    """Return the releases to go through: the newest known one that the entry claims comes first.

    An entry for none of them, as a step that was not claimed leaves it, is known where it begins.
    There is no way on from one that the newest known release leaves out.
    """
    here = Version(new.version)

    def inside(releases: Iterable[FollowingResolver]) -> list[FollowingResolver]:
        return [r for r in releases if Version(r.version) < here and in_range(own, r.version)]

    older = inside(known) or inside(between)[:1]
    older = [r for r in older if not _excludes(group, r)]
    newest = next((r for r in reversed(known) if Version(r.version) < here), None)
    if not older:
        return (new,)
    start = older[-1]
    if newest and Version(newest.version) > Version(start.version) and _excludes(group, newest):
        return (new,)
    every = {r.version: r for r in (*known, *between)}
    later = [r for r in every.values() if Version(start.version) < Version(r.version) < here]
    return (start, *sorted(later, key=lambda r: Version(r.version)), new)


def _excludes(group: Ranges, release: FollowingResolver) -> bool:
    return any(in_range(text, release.version) for text in group.excluded)


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

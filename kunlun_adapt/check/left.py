"""What `left_at_default` says: which members it leaves alone, and where it speaks of nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from kunlun_adapt.check.context import Context
from kunlun_adapt.check.keys import closest_slip, given_keys, key_spelled
from kunlun_adapt.documents import in_range
from kunlun_adapt.plan import CAPABILITIES, PLATFORM, spelled

_UNKNOWN: WeakKeyDictionary[Context, tuple[UnknownMember, ...]] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class UnknownMember:
    """An entry whose member nothing has: its index, and a name of upstream's that it may mean."""

    index: int
    member: str
    meant: str | None


def left_alone(context: Context, name: str) -> bool:
    """Tell whether the map says that a member stays as upstream has it in this release.

    It may say so by the member's own name or by the key that is spelled so. An entry that seems
    misspelt counts too: another finding speaks of it. One for `platform` leaves all of them: the
    map has hooks only, and no platform to give.
    """
    if any(name in (u.meant, f"{CAPABILITIES}.{u.meant}") for u in unknown_members(context)):
        return True
    for left in context.map.left_at_default:
        if in_range(left.sglang, context.release):
            if left.member == PLATFORM:
                return True
            spelling = spelled(context.map, left.member, context.release, context.beyond_claims)
            names = {left.member}
            if spelling is not None:
                names |= {spelling.method or spelling.field or left.member}
            if name in names or name.rpartition(".")[2] in names:
                return True
    return False


def given_all_the_same(context: Context) -> Iterator[tuple[int, str]]:
    """Yield the index of each entry for this release whose key the map gives and spells here."""
    given = given_keys(context)
    for index, left in enumerate(context.map.left_at_default):
        if not in_range(left.sglang, context.release):
            continue
        own = key_spelled(context, left.member)
        names = (left.member, f"methods.{left.member}", f"{CAPABILITIES}.{left.member}", own)
        key = next((k for k in names if k in given and _has(context, k)), None)
        if key is not None:
            yield index, key


def _has(context: Context, key: str) -> bool:
    """Tell whether the key has a place in this release."""
    if spelled(context.map, key, context.release) is not None:
        return True
    return key.startswith("methods.") and key.removeprefix("methods.") in context.platform_members


def unknown_members(context: Context) -> tuple[UnknownMember, ...]:
    """Return the entries for this release whose member is no key and no name of upstream's."""
    if context not in _UNKNOWN:
        _UNKNOWN[context] = tuple(_unknown(context))
    return _UNKNOWN[context]


def _unknown(context: Context) -> Iterator[UnknownMember]:
    if context.platform_class is None or not context.claimed:
        return
    known = member_names(context) | given_keys(context) | set(context.map.interface)
    for index, left in enumerate(context.map.left_at_default):
        plain = left.member.removeprefix("methods.").removeprefix(f"{CAPABILITIES}.")
        names = {left.member, plain, f"methods.{plain}", f"{CAPABILITIES}.{plain}"}
        here = in_range(left.sglang, context.release)
        if here and not names & known and not _locked(context, left.member):
            meant = closest_slip(left.member.rpartition(".")[2], member_names(context))
            yield UnknownMember(index, left.member, meant)


def member_names(context: Context) -> set[str]:
    """Return the public members of upstream's platform and its capabilities in this release."""
    names = {n for n in context.platform_members if not n.startswith("_")}
    spelling = spelled(context.map, CAPABILITIES, context.release)
    if spelling is not None and spelling.call is not None:
        names |= {n for n in context.facts.members(spelling.call) if not n.startswith("_")}
    return names


def _locked(context: Context, member: str) -> bool:
    """Tell whether any locked release has such a member."""
    lock, platform = context.lock, context.platform_class
    if lock is None or platform is None:
        return False
    leaf = member.rpartition(".")[2]
    calls = {s.call for s in context.map.interface.get(CAPABILITIES, ()) if s.call}
    paths = [f"{owner}.{leaf}" for owner in (platform.path, *calls)]
    return any(lock.symbol(release, path) for release in lock.releases for path in paths)

"""KA011: a claim that covers releases nobody verified."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from packaging.version import InvalidVersion, Version

from kunlun_adapt.check.context import Context
from kunlun_adapt.check.wording import listed
from kunlun_adapt.diagnostics import Finding, Position
from kunlun_adapt.documents import in_range
from kunlun_adapt.plan import bind_groups
from kunlun_adapt.upstream import Lock


def rule(context: Context) -> Iterable[Finding]:
    """Report the map's claim once, and each binding that claims a locked release without its facts.

    Of the release that is being checked KA107 says the same, so nothing is said of it here.
    """
    if context.lock is None or not context.lock.releases:
        return
    yield from _map(context, context.lock)
    for place in _places(context):
        yield from _binding(context, context.lock, place)


def _map(context: Context, lock: Lock) -> Iterator[Finding]:
    locked = {*lock.releases, context.release}
    claimed = [r for r in _existing(context, lock) if in_range(context.map.sglang, r)]
    unverified = [r for r in claimed if r not in locked]
    if unverified:
        yield Finding.of(
            "KA011",
            f"the map claims sglang {listed(unverified)}, which adapt.lock does not hold: nobody "
            "verified the bindings there",
            context.document.at("sglang"),
            suggestion=f"run {context.lock_command(*unverified)} and validate them, or narrow the "
            "claim",
        )


def _existing(context: Context, lock: Lock) -> list[str]:
    """Return the releases that exist for all that can be known here, oldest first.

    These are the locked ones, those that the `stack` names, and, since upstream counts its last
    number up by one, what lies between them.
    """
    named = {*lock.releases, *(row.get("sglang", "") for row in context.map.stack)}
    known = {version.release: version for text in named if (version := _plain(text))}
    made = set(known.values())
    for minor in {version.release[:2] for version in made}:
        micros = [v.release[2] for v in known.values() if v.release[:2] == minor]
        made |= {Version(f"{minor[0]}.{minor[1]}.{n}") for n in range(min(micros), max(micros))}
    return [str(version) for version in sorted(made)]


def _plain(text: str) -> Version | None:
    """Read a release of three numbers; post- and pre-releases have no place in the count."""
    try:
        version = Version(text)
    except InvalidVersion:
        return None
    plain = len(version.release) == 3 and not (version.is_prerelease or version.is_postrelease)
    return version if plain and version.release[2] < 1000 else None


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a binding binds in the releases of one of its ranges."""

    binding: str
    range: str
    path: str
    excluded: tuple[str, ...]
    position: Position


def _places(context: Context) -> Iterator[_Place]:
    for entry in context.catalog.hooks:
        hook, where = entry.hook, entry.document
        for i, at in enumerate(hook.at):
            if at.provided_by is None and at.package is None:
                # A member to be added is not there yet; what it is added to is what is locked.
                path = at.target.rpartition(".")[0] if hook.type == "add" else at.target
                excluded = tuple(e.sglang for e in hook.excluded)
                place = where.at(*entry.path, "at", i, "sglang")
                yield _Place(hook.id, at.sglang, path, excluded, place)
    for recipe in context.operators:
        for id, indexes in bind_groups(recipe.model).items():
            for i in indexes:
                bind = recipe.model.binds[i]
                if bind.provided_by is None and bind.package is None:
                    excluded = tuple(e.sglang for e in bind.excluded)
                    place = recipe.at("binds", i, "sglang")
                    yield _Place(id, bind.sglang, bind.target, excluded, place)


def _binding(context: Context, lock: Lock, place: _Place) -> Iterator[Finding]:
    """Look only at what the lock knows in part: of what it does not know at all KA107 speaks."""
    held = [r for r in lock.releases if lock.symbol(r, place.path) is not None]
    unverified = [
        release
        for release in lock.releases
        if release != context.release
        and release not in held
        and in_range(place.range, release)
        and in_range(context.map.sglang, release)
        and not any(in_range(excluded, release) for excluded in place.excluded)
    ]
    if held and unverified:
        yield Finding.of(
            "KA011",
            f"{place.binding} claims sglang {listed(unverified)} as well, and adapt.lock holds "
            f"{place.path} for {listed(held)} only",
            place.position,
            binding=place.binding,
            target=place.path,
            suggestion="narrow its `sglang` to what was verified, or run "
            f"{context.lock_command(*unverified)}",
        )

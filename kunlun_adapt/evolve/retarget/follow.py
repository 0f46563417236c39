"""Follow a symbol from the release in which it was bound, release by release, to the new one."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from kunlun_adapt.evolve.retarget.company import Users
from kunlun_adapt.evolve.retarget.evidence import Candidate, Evidence, candidates
from kunlun_adapt.evolve.retarget.rates import Rate, rate_of
from kunlun_adapt.upstream import Location, Missing, Suggestion, Symbol
from kunlun_adapt.upstream.following import FollowingResolver

MANY = 3
"""A body in more places than these is no one's in particular."""


@dataclass(frozen=True, slots=True)
class Step:
    """One move on the way: between which releases, from where to where, and what speaks for it."""

    before: str
    after: str
    source: str
    path: str
    evidence: Evidence
    rate: Rate


@dataclass(frozen=True, slots=True)
class Followed:
    """Where a symbol is in the new release, by which steps; without a path nothing is it.

    `gone` is the first release without it, `near` what may be it and is too little alike.
    """

    path: str | None
    steps: tuple[Step, ...]
    gone: str | None = None
    near: tuple[Candidate, ...] = ()
    location: Location | None = None

    @property
    def rate(self) -> Rate | None:
        """The rate of the least sure step."""
        return min((s.rate for s in self.steps), key=lambda r: r.low, default=None)


def follow(
    path: str, releases: Sequence[FollowingResolver], users: Users, taken: Collection[str] = ()
) -> Followed:
    """Follow a path through `releases`: the first one has it, the last is the new one.

    What another binding is about (`taken`) is where it went only if it does the same.
    """
    first, *later = releases
    symbol = first.resolve(path)
    if not isinstance(symbol, Symbol):
        return Followed(None, (), first.version)
    here, steps, lost_in = first, list[Step](), None
    for release in later:
        found = release.resolve(symbol.path)
        if isinstance(found, Symbol):
            here, symbol, lost_in = release, found, None
            continue
        last = release is later[-1]
        step = _by_import(here, symbol, release, users)
        if step is None:
            step = _by_search(here, symbol, release, users, taken if last else (), whole=last)
        if step is None:
            # It may be back later, or be found from here in a release that is further on.
            lost_in = lost_in or release.version
            continue
        moved = release.resolve(step.path)
        assert isinstance(moved, Symbol)
        steps.append(step)
        here, symbol, lost_in = release, moved, None
    if lost_in is not None:
        return Followed(None, tuple(steps), lost_in, _near(here, symbol, later[-1], users))
    return Followed(symbol.path, tuple(steps), location=symbol.location)


def _by_import(
    here: FollowingResolver, symbol: Symbol, release: FollowingResolver, users: Users
) -> Step | None:
    """Return the step to the definition from which the older release already imported it."""
    if symbol.resolved == symbol.path or symbol.inherited_from is not None:
        return None
    found = release.resolve(symbol.resolved)
    if not isinstance(found, Symbol):
        return None
    evidence = replace(candidate_evidence(here, symbol, release, found, users), imported=True)
    return _step(here, symbol, release, found.path, evidence)


def _by_search(
    here: FollowingResolver,
    symbol: Symbol,
    release: FollowingResolver,
    users: Users,
    taken: Collection[str],
    *,
    whole: bool,
) -> Step | None:
    for item in searched(here, symbol, release, users, whole=whole):
        evidence = item.evidence
        if evidence.by_body_alone and evidence.parameters != "same parameters":
            continue
        if item.symbol.resolved in taken and evidence.body != "same body":
            continue
        step = _step(here, symbol, release, item.symbol.path, evidence)
        return step if step.rate.is_likely and not evidence.by_name_alone else None
    return None


def searched(
    here: FollowingResolver,
    symbol: Symbol,
    release: FollowingResolver,
    users: Users,
    *,
    whole: bool,
) -> list[Candidate]:
    """Return what a lost symbol may be in a release, the likeliest first.

    With the `whole` release at hand its body is looked for as well, under any name.
    """
    missing = release.resolve(symbol.path)
    deepest = missing.deepest if isinstance(missing, Missing) else symbol.path.rpartition(".")[0]
    lost = Missing(symbol.path, "symbol_missing", deepest=deepest)
    near = [*release.suggest(lost, symbol.fingerprint or None).suggestions]
    near += _same_bodies(symbol, release) if whole else []
    unique = {s.path: s for s in near if s.path != symbol.path}
    return candidates(here, symbol, release, unique.values(), users)


def _same_bodies(symbol: Symbol, release: FollowingResolver) -> list[Suggestion]:
    """Return the few definitions with the symbol's body."""
    if not symbol.fingerprint:
        return []
    found = [d for d in release.index.by_fingerprint(symbol.fingerprint) if "test" not in d.module]
    return [Suggestion(d.path, d.location, 0.0, "the same body") for d in found[: MANY + 1]]


def candidate_evidence(
    here: FollowingResolver,
    symbol: Symbol,
    release: FollowingResolver,
    found: Symbol,
    users: Users,
) -> Evidence:
    """Return what speaks for one place, whatever else there is."""
    near = [Suggestion(found.path, found.location, 0.0, "")]
    known = candidates(here, symbol, release, near, users)
    return known[0].evidence if known else Evidence("other name", "no body", "no parameters")


def _step(
    here: FollowingResolver,
    symbol: Symbol,
    release: FollowingResolver,
    path: str,
    evidence: Evidence,
) -> Step:
    rate = rate_of("moved", evidence.key)
    return Step(here.version, release.version, symbol.path, path, evidence, rate)


def _near(
    here: FollowingResolver, symbol: Symbol, release: FollowingResolver, users: Users
) -> tuple[Candidate, ...]:
    found = searched(here, symbol, release, users, whole=True)
    return tuple(item for item in found if item.evidence.is_worth_a_look)[:3]

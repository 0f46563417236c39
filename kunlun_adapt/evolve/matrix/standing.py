"""How every binding stands in one release, by itself: what a process of the matrix finds out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from kunlun_adapt.check import Context, context_for, report_of
from kunlun_adapt.check.drift import changes
from kunlun_adapt.check.locked import locked_uses
from kunlun_adapt.diagnostics import Finding, Severity
from kunlun_adapt.documents import Catalog, in_range
from kunlun_adapt.evolve.diff.subjects import bindings_of, subjects
from kunlun_adapt.plan import Binding
from kunlun_adapt.upstream import Lock, Symbol
from kunlun_adapt.upstream.following import FollowingResolver

WATCHED = "watch"


@dataclass(frozen=True, slots=True)
class Standing:
    """One binding: `symbols` are those that it stands for, each under a key for what.

    `drift` says in what they differ from what the lock has of this release.
    """

    binding: Binding
    claimed: bool
    symbols: dict[str, Symbol]
    drift: tuple[str, ...]
    codes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Standings:
    """All bindings in one release. `shut` says why nothing can be bound there, "" where it can."""

    release: str
    source: str
    claimed: bool
    shut: str
    bindings: tuple[Standing, ...]
    errors: tuple[Finding, ...]


def standings(
    catalog: Catalog,
    lock: Lock,
    resolver: FollowingResolver,
    *,
    beyond_claims: bool = False,
    source: str = "",
    workspace: str | None = None,
) -> Standings:
    """Check one release, and tell of each binding what it stands for. Needs a map that loads."""
    context = context_for(
        catalog,
        resolver,
        lock=lock,
        beyond_claims=beyond_claims,
        source=source or None,
        workspace=workspace,
    )
    assert context is not None, "a workspace without a map is refused before"
    found = report_of(context).findings
    known = bindings_of(context)
    errors = tuple(f for f in found if f.severity is Severity.ERROR)
    shut = _shut(context)
    symbols = {} if shut else _symbols(context)
    drift = {} if shut else _drift(context)
    made = tuple(
        Standing(
            binding=binding,
            claimed=context.claimed and _claims(binding, context.release),
            symbols=symbols.get(id, {}),
            drift=drift.get(id, ()),
            codes=tuple(dict.fromkeys(f.code for f in errors if f.binding == id)),
        )
        for id, binding in known.items()
    )
    resolver.keep_answers()
    return Standings(
        context.release, source or context.release, context.claimed, shut, made, errors
    )


def _shut(context: Context) -> str:
    """Say why nothing can be bound in a release at all."""
    missing = context.platform_packages_missing
    if missing:
        return f"sglang {context.release} has no {' and no '.join(missing)}"
    if not (context.claimed or context.beyond_claims):
        return f"the map claims {context.map.sglang}"
    return ""


def _claims(binding: Binding, release: str) -> bool:
    return any(in_range(claim, release) for claim in binding.claims.split(" | "))


def _symbols(context: Context) -> dict[str, dict[str, Symbol]]:
    """Return what each binding stands for, under keys that are the same in every release."""
    found: dict[str, dict[str, Symbol]] = defaultdict(dict)
    for id, key, symbol in _named(context):
        found[id].setdefault(key, symbol)
    return found


def _named(context: Context) -> Iterator[tuple[str, str, Symbol]]:
    for (id, role, number), subject in subjects(context).items():
        if role != WATCHED and subject.binding is not None and isinstance(subject.symbol, Symbol):
            yield id, f"{role} {number}".rstrip(), subject.symbol
    for member in context.members:
        if isinstance(member.symbol, Symbol):
            yield member.binding.id, "member", member.symbol
    for plan in context.plans:
        for model in plan.models:
            if isinstance(model.registry, Symbol):
                yield model.binding.id, "registry", model.registry


def _drift(context: Context) -> dict[str, tuple[str, ...]]:
    """Return in what each binding's symbols differ from what the lock has of this release."""
    found: dict[str, dict[str, None]] = defaultdict(dict)
    for use in locked_uses(context) if context.lock is not None else ():
        held = context.lock.symbol(context.release, use.path) if context.lock else None
        if held is not None and use.binding is not None:
            told = (f"the lock has another: {text}" for text in changes(held, use.symbol))
            found[use.binding].update(dict.fromkeys(told))
    return {id: tuple(told) for id, told in found.items()}

"""KA401: two bindings patch one target in one release and profile."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kunlun_adapt.check.context import Context, member_path
from kunlun_adapt.diagnostics import Finding, Position
from kunlun_adapt.plan import Member, Plan
from kunlun_adapt.upstream import Symbol

ADDITIVE = ("register", "extend")
"""Hooks of these types add to what is there; two of them do not get in each other's way."""


@dataclass(frozen=True, slots=True)
class Patch:
    """One binding that changes one upstream definition."""

    id: str
    names: frozenset[str]
    type: str
    process: frozenset[str]
    symbol: Symbol
    target: str
    position: Position


def rule(context: Context) -> Iterable[Finding]:
    """Report pairs on one definition (a re-export counts as its definition) without a decision."""
    decided = [frozenset(c.between) for c in context.map.conflicts]
    for plan in context.plans:
        seen: dict[str, list[Patch]] = {}
        for patch in _patches(plan):
            for earlier in seen.setdefault(patch.symbol.resolved, []):
                if _collide(earlier, patch) and not _decided(earlier, patch, decided):
                    yield _report(earlier, patch)
            seen[patch.symbol.resolved].append(patch)
        yield from _members(context, plan)


def _patches(plan: Plan) -> Iterator[Patch]:
    for kernel in (*plan.kernels, *plan.planned_kernels):
        if isinstance(kernel.symbol, Symbol):
            yield Patch(
                id=kernel.binding.id,
                names=frozenset({kernel.binding.id, kernel.recipe.model.name}),
                type=kernel.bind.style,
                process=frozenset(),
                symbol=kernel.symbol,
                target=kernel.bind.target,
                position=kernel.recipe.at(*kernel.path, "target"),
            )
    for hook in (*plan.hooks, *plan.planned_hooks):
        if isinstance(hook.symbol, Symbol):
            yield Patch(
                id=hook.binding.id,
                names=frozenset({hook.binding.id}),
                type=hook.hook.type,
                process=frozenset(hook.hook.process or ()),
                symbol=hook.symbol,
                target=hook.at.target,
                position=hook.document.at(*hook.path, "target"),
            )


def _collide(one: Patch, other: Patch) -> bool:
    if one.type in ADDITIVE and other.type in ADDITIVE:
        return False
    apart = one.process and other.process and not one.process & other.process
    return one.id != other.id and not apart


def _decided(one: Patch, other: Patch, decided: list[frozenset[str]]) -> bool:
    return any(one.names & names and other.names & names for names in decided)


def _report(earlier: Patch, patch: Patch) -> Finding:
    definition = patch.symbol.resolved
    both = "" if earlier.target == patch.target else f" (both names mean {definition})"
    return Finding.of(
        "KA401",
        f"{patch.id} ({patch.type}) and {earlier.id} ({earlier.type}) both patch "
        f"{patch.target}{both}; {_outcome(earlier, patch)}",
        patch.position,
        binding=patch.id,
        target=patch.target,
        upstream=patch.symbol.location,
        suggestion="merge them, or record what was decided in conflicts: "
        f'- {{between: [{earlier.id}, {patch.id}], decision: "…", recorded: YYYY-MM-DD}}',
    )


def _outcome(one: Patch, other: Patch) -> str:
    if one.type == other.type == "replace":
        return "the last one wins"
    return "nothing settles which runs first"


def _members(context: Context, plan: Plan) -> Iterator[Finding]:
    """Two keys under one method need an argument that tells them apart."""
    seen: dict[tuple[str, str], Member] = {}
    for member in plan.members:
        if member.spelling is None:
            continue
        argument = {k: _own(member, v) for k, v in member.spelling.argument.items()}
        case = (member.name, repr(sorted(argument.items())))
        earlier = seen.setdefault(case, member)
        if earlier is not member:
            path = context.spelling_at(member.key)
            yield Finding.of(
                "KA401",
                f"{earlier.key} and {member.key} are both spelled {member.name}; only the first "
                "would ever be handed out",
                context.document.at(*(path or member_path(member))),
                binding=member.binding.id,
                target=member.binding.target,
                suggestion="tell them apart with `argument: {…}`, or spell one differently",
            )


def _own(member: Member, value: object) -> object:
    return member.key.rpartition(".")[2] if value == "$key" else value

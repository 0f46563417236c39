"""KA401: two bindings patch one target in one release and profile."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kunlun_adapt.check.context import Context, member_path
from kunlun_adapt.check.patches import WRAPPERS, Patch, both_names, decide, decided, shared_targets
from kunlun_adapt.diagnostics import Finding
from kunlun_adapt.plan import Member, Plan


def rule(context: Context) -> Iterable[Finding]:
    """Report pairs of which only one can stay in place, unless a decision is recorded.

    KA403 speaks of hooks that wrap, and KA405 of a kernel and a hook.
    """
    for plan in context.plans:
        for earlier, patch in shared_targets(plan):
            hooks = (earlier.hook is not None) + (patch.hook is not None)
            wraps = earlier.type in WRAPPERS or patch.type in WRAPPERS
            if hooks != 1 and not wraps and not decided(context, earlier, patch):
                yield _report(earlier, patch)
        yield from _members(context, plan)


def _report(earlier: Patch, patch: Patch) -> Finding:
    return Finding.of(
        "KA401",
        f"{patch.id} ({patch.type}) and {earlier.id} ({earlier.type}) both patch "
        f"{patch.target}{both_names(earlier, patch)}; {_outcome(earlier, patch)}",
        patch.position,
        binding=patch.id,
        target=patch.target,
        upstream=patch.symbol.location,
        suggestion=f"merge them, or record what was decided in {decide(earlier, patch)}",
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

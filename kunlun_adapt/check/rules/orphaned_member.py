"""KA201: a member of ours that this release's platform class does not have."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kunlun_adapt.check.context import Context, member_path
from kunlun_adapt.check.keys import slip_tip
from kunlun_adapt.check.platform_body import capabilities_class, stated_capabilities
from kunlun_adapt.check.wording import flow, nearest
from kunlun_adapt.diagnostics import EntryChange, Finding, ItemChange, Mend, Position
from kunlun_adapt.plan import CAPABILITIES, Member
from kunlun_adapt.upstream import Missing


def rule(context: Context) -> Iterable[Finding]:
    """Report members that upstream would never call, because it does not know their names."""
    if context.platform_class is None or context.reader is None:
        return
    for member in context.members:
        if member.spelling is None or not isinstance(member.symbol, Missing):
            continue
        near = _capability(context, member) or _near(context, member)
        yield Finding.of(
            "KA201",
            f"the platform of sglang {context.release} has no {member.name}, as which "
            f"{member.key} is spelled",
            _position(context, member),
            binding=member.binding.id,
            target=member.binding.target,
            upstream=context.platform_class.location,
            suggestion=_split(context, member, near),
        )


def _near(context: Context, member: Member) -> str | None:
    """Return the name that is most like the lost one, as a spelling writes it."""
    owner, _, leaf = member.name.rpartition(".")
    names = _fields(context) if owner == CAPABILITIES else []
    if names:
        near = nearest(leaf, names, cutoff=70)
        return near and f"{CAPABILITIES}.{near}"
    return nearest(leaf, [n for n in context.platform_members if n[0] != "_"], cutoff=70)


def _capability(context: Context, member: Member) -> str | None:
    """Return the field of the release's capabilities that the key is named after."""
    owner, _, leaf = member.key.rpartition(".")
    names = (leaf, f"supports_{leaf}", f"support_{leaf}") if owner == CAPABILITIES else ()
    found = next((n for n in names if n in _fields(context)), None)
    return found and f"{CAPABILITIES}.{found}"


def _fields(context: Context) -> list[str]:
    path = stated_capabilities(context) or capabilities_class(context)
    return list(context.facts.members(path)) if path else []


def _position(context: Context, member: Member) -> Position:
    path = context.spelling_at(member.key)
    if path is None:
        return context.document.key_at(*member_path(member))
    kind = "method" if member.spelling and member.spelling.method else "field"
    return context.document.at(*path, kind)


def _split(context: Context, member: Member, near: str | None) -> Mend | str:
    slip = slip_tip(context, member.key)
    if slip is not None:
        return slip
    path = context.spelling_at(member.key)
    key = str(path[1]) if path else member.key
    if near is None:
        return (
            f"if the release does without it: left_at_default: "
            f'[{{member: {member.key}, sglang: ">={context.release}", why: "…"}}]'
        )
    field = near.startswith(f"{CAPABILITIES}.")
    argument = {} if field else _argument(context, member, near)
    told: dict[str, Any] = {"field" if field else "method": near}
    if argument:
        told["argument"] = argument
    said = flow({"sglang": f">={context.release}", **told})
    text = f"interface.{key}: add {said}"
    if path is None:
        return text
    other = "method" if field else "field"
    values = {other: None, "argument": argument or None, **told}
    raw = context.document.raw
    change = EntryChange(raw.file, raw.index, path, values)
    told_of = stated_capabilities(context) is not None
    whole = capabilities_class(context) if field and not told_of else None
    if whole is None:
        return Mend(text, "spelled", (change,))
    item = {"sglang": f">={context.release}", "call": whole}
    text += f"; and interface.{CAPABILITIES}: [{flow(item)}]"
    beside = ItemChange(raw.file, raw.index, ("interface", CAPABILITIES), item)
    return Mend(text, "spelled", (change, beside))


def _argument(context: Context, member: Member, near: str) -> dict[str, str]:
    """One method for several keys is told which by its only argument."""
    symbol = context.platform_members.get(near)
    if symbol is None or symbol.signature is None or "." not in member.key:
        return {}
    asked = symbol.signature.without_first().required()
    leaf = member.key.rpartition(".")[2]
    return {asked[0]: leaf} if len(asked) == 1 else {}

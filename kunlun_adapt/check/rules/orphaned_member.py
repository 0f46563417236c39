"""KA201: a member of ours that this release's platform class does not have."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kunlun_adapt.check.alike_members import like_member, shares_a_word
from kunlun_adapt.check.context import Context, member_path
from kunlun_adapt.check.keys import slip_tip
from kunlun_adapt.check.platform_body import capabilities_class, stated_capabilities
from kunlun_adapt.check.wording import flow
from kunlun_adapt.diagnostics import EntryChange, Finding, ItemChange, Mend, Position
from kunlun_adapt.plan import CAPABILITIES, Member
from kunlun_adapt.upstream import Missing, Symbol

ESSENTIAL = ("attention_backend", "device", "paged_allocator")
"""The first names of keys without which what runs is not ours, or nothing runs."""


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
    """Return the name that says what the lost one said, as a spelling writes it.

    What another key is spelled by already is about something else.
    """
    owner, _, leaf = member.name.rpartition(".")
    others = [m for m in context.members if m.key != member.key and isinstance(m.symbol, Symbol)]
    taken = {m.name for m in others if m.spelling is not None and not m.spelling.argument}
    flag = member.key.startswith(f"{CAPABILITIES}.")
    if flag or owner == CAPABILITIES:
        fields = [n for n in _fields(context) if f"{CAPABILITIES}.{n}" not in taken]
        near = like_member(leaf, fields, member.key)
        if near is not None:
            return f"{CAPABILITIES}.{near}"
    names = [n for n in context.platform_members if n[0] != "_" and n not in taken]
    if flag:
        names = [n for n in names if _asks_plainly(context.platform_members[n])]
    return like_member(leaf, names, member.key)


def _asks_plainly(symbol: Symbol) -> bool:
    """Tell whether a method asks yes or no about the platform itself, and of nothing else."""
    given = symbol.signature.without_first().required() if symbol.signature is not None else ()
    return symbol.kind in ("method", "classmethod", "staticmethod") and not given


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
        return _nothing_near(context, member, key)
    field = near.startswith(f"{CAPABILITIES}.")
    argument = {} if field else _argument(context, member, near)
    told: dict[str, Any] = {"field" if field else "method": near}
    if argument:
        told["argument"] = argument
    said = flow({"sglang": f">={context.floor}", **told})
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
    item = {"sglang": f">={context.floor}", "call": whole}
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


def _nothing_near(context: Context, member: Member, key: str) -> str:
    """Say what to look at: to leave the key alone is no advice where that turns something off."""
    left = f'left_at_default: [{{member: {member.key}, sglang: ">={context.floor}", why: "…"}}]'
    kind = "field" if member.key.startswith(f"{CAPABILITIES}.") else "method"
    add = f'interface.{key}: add {{sglang: ">={context.floor}", {kind}: …}}'
    if kind == "field":
        lost = (member.name.rpartition(".")[2], member.key.rpartition(".")[2])
        like = [f for f in _fields(context) if any(shares_a_word(name, f) for name in lost)]
        if like:
            named = ", ".join(f"{CAPABILITIES}.{f}" for f in like)
            return f"if it is one of {named} now: {add}; if the release does without it: {left}"
    if _is_essential(context, member):
        where = context.platform_class.location.file if context.platform_class else "its class"
        return f"look in {where} for what upstream asks instead: {add}"
    return f"if the release does without it: {left}"


def _is_essential(context: Context, member: Member) -> bool:
    """Tell whether upstream's default in its place would silently be another thing than ours."""
    first, _, rest = member.key.partition(".")
    alike = [m for m in context.members if m.key == member.key]  # one for each value of a profile
    on = first == CAPABILITIES and any(m.content is True for m in alike)
    return on or first in ESSENTIAL or (first == "kv_pool" and bool(rest))

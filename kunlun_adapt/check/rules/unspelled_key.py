"""KA202: a key of the map that has no spelling for this release."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kunlun_adapt.check.context import Context, member_path
from kunlun_adapt.check.keys import slip_in_interface, slip_tip
from kunlun_adapt.check.proposed import around
from kunlun_adapt.check.wording import flow, nearest
from kunlun_adapt.diagnostics import Finding, ItemChange, Mend, Position
from kunlun_adapt.plan import CAPABILITIES, PLATFORM, Member, spelled

DEFAULT_CLASS = "sglang.srt.platforms.interface.SRTPlatform"


def rule(context: Context) -> Iterable[Finding]:
    """Report keys for which the interface says nothing about the release."""
    if context.platform_packages_missing:
        return
    yield from _platform(context)
    for member in context.members:
        if member.spelling is None:
            yield Finding.of(
                "KA202",
                f"nothing says how {member.key} is spelled in sglang {context.release}"
                f"{_elsewhere(context, member.key)}",
                _position(context, member),
                binding=member.binding.id,
                suggestion=_suggestion(context, member.key),
            )


def _platform(context: Context) -> Iterator[Finding]:
    if spelled(context.map, PLATFORM, context.release, context.beyond_claims) is None:
        yield Finding.of(
            "KA202",
            f"nothing says what upstream's platform class is in sglang {context.release}",
            context.document.key_at("interface", PLATFORM),
            binding=f"factory/{PLATFORM}",
            suggestion="interface.platform: add "
            + flow({**_range(context, PLATFORM), "call": DEFAULT_CLASS}),
        )


def _position(context: Context, member: Member) -> Position:
    slip = slip_in_interface(context, member.key)
    path = ("interface", slip) if slip is not None else member_path(member)
    return context.document.key_at(*path)


def _elsewhere(context: Context, key: str) -> str:
    ranges = " | ".join(_ranges(context, key))
    return f" (only in {ranges})" if ranges else ""


def _ranges(context: Context, key: str) -> list[str]:
    """The releases for which the key, or the group that it is of, is spelled."""
    interface = context.map.interface
    group = [s for s in interface.get(key.rpartition(".")[0], ()) if s.call is None]
    return [s.sglang for s in interface.get(key) or group]


def _range(context: Context, key: str) -> dict[str, str]:
    """The start of a further spelling: it meets none of those that there are."""
    taken = _ranges(context, key)
    return {"sglang": around(context, taken, fill=context.claimed).text} if taken else {}


def _suggestion(context: Context, key: str) -> Mend | str:
    slip = slip_tip(context, key)
    if slip is not None:
        return slip
    leaf = key.rpartition(".")[2]
    if key.startswith(f"{CAPABILITIES}."):
        spelling = spelled(context.map, CAPABILITIES, context.release, context.beyond_claims)
        if spelling and spelling.call:
            field = nearest(leaf, context.facts.members(spelling.call)) or leaf
            return _add(context, key, {"field": f"{CAPABILITIES}.{field}"})
    names = [n for n in context.platform_members if not n.startswith("_")]
    near = nearest(leaf, names, cutoff=50)
    return _add(context, key, {"method": near or "…"}, guessed=True)


def _add(context: Context, key: str, told: dict[str, str], guessed: bool = False) -> Mend:
    item = {**_range(context, key), **told}
    said = ", ".join(f"{k}: {v if k in told else flow(v)}" for k, v in item.items())
    text = f"interface.{key}: add {{{said}}}{_or_left(context, key)}"
    if "…" in told.values():
        return Mend(text)
    raw = context.document.raw
    change = ItemChange(raw.file, raw.index, ("interface", key), item)
    # A method of a like name may be about something else.
    asks = ("whether the member is the same",) if guessed else ()
    return Mend(text, "spelled", (change,), asks)


def _or_left(context: Context, key: str) -> str:
    range_ = around(context, _ranges(context, key), fill=context.claimed).text
    return f', or left_at_default: add {{member: {key}, sglang: "{range_}", why: "…"}}'

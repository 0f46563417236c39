"""KA204: a platform member that only raises, and that nothing in the map gives."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kunlun_adapt.check.alike_members import like_member
from kunlun_adapt.check.context import Context, member_path
from kunlun_adapt.check.keys import give, key_spelled
from kunlun_adapt.check.left import left_alone
from kunlun_adapt.check.platform_body import (
    giving_key,
    profiles_without,
    raising_members,
)
from kunlun_adapt.diagnostics import Finding, Position
from kunlun_adapt.plan import PLATFORM


def rule(context: Context) -> Iterable[Finding]:
    """Report members that raise NotImplementedError unless the platform gives them."""
    if context.platform_class is None:
        return
    for name, symbol in raising_members(context):
        profiles = profiles_without(context, name)
        if not profiles or left_alone(context, name):
            continue
        some = len(profiles) < len(context.plans)
        key = giving_key(context, name) if some else key_spelled(context, name)
        nothing = "no key of the map gives it"
        if some and key is not None:
            nothing = f"{key} gives it nothing for the profile {' and '.join(profiles)}"
        yield Finding.of(
            "KA204",
            f"{name} raises NotImplementedError in sglang {context.release}, and {nothing}",
            _position(context, key, some),
            target=symbol.path,
            upstream=symbol.location,
            suggestion=_suggestion(context, name, key, profiles if some else ()),
        )


def _position(context: Context, key: str | None, given: bool) -> Position:
    """Where the key is given, or else spelled; where no key is the platform class is named."""
    document = context.document
    if key is not None and given:
        member = next(m for m in context.members if m.key == key)
        return document.key_at(*member_path(member))
    if key is not None:
        return document.key_at("interface", key)
    place = context.spelling_at(PLATFORM)
    return document.at(*place, "call") if place else document.at("interface")


def _suggestion(context: Context, name: str, key: str | None, profiles: Sequence[str]) -> str:
    """Name the key that is spelled so, or the one nearest in meaning that is not spelled here."""
    if key is not None and profiles:
        return f"{key}: add " + ", ".join(f"`{profile}: …`" for profile in profiles)
    if key is not None:
        return f"`{give(key)}`, or left_at_default: add {{member: {key}, why: …}}"
    unspelled = [m.key for m in context.members if not m.name]
    near = like_member(name, unspelled)
    add = f"interface.{near}: add {{method: {name}}}" if near else f"methods: add {name}: …"
    return f"{add}, or left_at_default: add {{member: {name}, why: …}}"

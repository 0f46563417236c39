"""KA203: a capability of the release that the map neither sets nor leaves at its default."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from kunlun_adapt.check.context import Context
from kunlun_adapt.check.keys import give, key_spelled
from kunlun_adapt.check.left import left_alone
from kunlun_adapt.check.platform_body import giving_key, profiles_without
from kunlun_adapt.diagnostics import Finding
from kunlun_adapt.plan import CAPABILITIES, spelled
from kunlun_adapt.upstream import Symbol

_ASKS = re.compile(r"supports?_")


def rule(context: Context) -> Iterable[Finding]:
    """Report capabilities that upstream reads and that stay off because nobody spoke of them."""
    if context.platform_class is None or context.reader is None:
        return
    for name, symbol in _capabilities(context):
        profiles = profiles_without(context, name)
        if not profiles or left_alone(context, name):
            continue
        some = len(profiles) < len(context.plans)
        key = giving_key(context, name) if some else None
        place: tuple[str, ...] = ("methods" if str(key).startswith("methods.") else CAPABILITIES,)
        if key is not None:
            place = (*place, key.partition(".")[2])
        whose = f"for the profile {' and '.join(profiles)} " if some else ""
        yield Finding.of(
            "KA203",
            f"sglang {context.release} asks the platform for {name}, which the map leaves "
            f"{whose}at upstream's default{_default(symbol)}",
            context.document.key_at(*place),
            target=symbol.path,
            upstream=symbol.location,
            suggestion=_suggestion(context, name, symbol, key, profiles),
        )


def _suggestion(
    context: Context, name: str, symbol: Symbol, key: str | None, profiles: Sequence[str]
) -> str:
    if key is not None:
        return f"{key}: add " + ", ".join(f"`{profile}: …`" for profile in profiles)
    left = f", or left_at_default: add {{member: {name}, why: …}}"
    if (spelling_key := key_spelled(context, name)) is not None:
        return f"give `{give(spelling_key)}`{left}"
    if _takes_arguments(symbol):
        return f"give `methods: {{{name}: …}}`{left}"
    short = re.sub(r"^supports?_", "", name.rpartition(".")[2])
    kind = "field" if name.startswith(f"{CAPABILITIES}.") else "method"
    return (
        f"give `capabilities: {{{short}: true}}` and interface.{CAPABILITIES}.{short}: "
        f"[{{{kind}: {name}}}]{left}"
    )


def _capabilities(context: Context) -> Iterable[tuple[str, Symbol]]:
    spelling = spelled(context.map, CAPABILITIES, context.release, context.beyond_claims)
    if spelling is not None and spelling.call is not None:
        for name, symbol in context.facts.members(spelling.call).items():
            if not name.startswith("_") and symbol.kind in ("attribute", "constant"):
                yield f"{CAPABILITIES}.{name}", symbol
    for name, symbol in context.platform_members.items():
        if _ASKS.match(name) and symbol.kind in ("method", "classmethod", "staticmethod"):
            yield name, symbol


def _takes_arguments(symbol: Symbol) -> bool:
    return symbol.signature is not None and len(symbol.signature.parameters) > 1


def _default(symbol: Symbol) -> str:
    return f" ({symbol.value})" if symbol.value else ""

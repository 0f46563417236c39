"""KA203: a capability of the release that the map neither sets nor leaves at its default."""

from __future__ import annotations

import re
from collections.abc import Iterable

from kunlun_adapt.check.context import Context
from kunlun_adapt.check.platform_body import left_alone, spelled_names
from kunlun_adapt.diagnostics import Finding
from kunlun_adapt.plan import CAPABILITIES, spelled
from kunlun_adapt.upstream import Symbol

_ASKS = re.compile(r"supports?_")


def rule(context: Context) -> Iterable[Finding]:
    """Report capabilities that upstream reads and that stay off because nobody spoke of them."""
    if context.platform_class is None or context.reader is None:
        return
    given = spelled_names(context)
    for name, symbol in _capabilities(context):
        if name in given or left_alone(context, name):
            continue
        short = re.sub(r"^supports?_", "", name.rpartition(".")[2])
        kind = "field" if name.startswith(f"{CAPABILITIES}.") else "method"
        if _takes_arguments(symbol):
            give = f"give `methods: {{{name}: …}}`"
        else:
            give = (
                f"give `capabilities: {{{short}: true}}` and interface.{CAPABILITIES}.{short}: "
                f"[{{{kind}: {name}}}]"
            )
        yield Finding.of(
            "KA203",
            f"sglang {context.release} asks the platform for {name}, which the map leaves at "
            f"upstream's default{_default(symbol)}",
            context.document.key_at(CAPABILITIES),
            target=symbol.path,
            upstream=symbol.location,
            suggestion=f"{give}, or left_at_default: add {{member: {name}, why: …}}",
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

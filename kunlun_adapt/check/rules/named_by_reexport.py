"""KA108: the target is another name of what upstream defines."""

from __future__ import annotations

from collections.abc import Iterable

from kunlun_adapt.check.context import Context
from kunlun_adapt.check.targets import Bound, bound
from kunlun_adapt.diagnostics import Finding
from kunlun_adapt.plan import HookBinding
from kunlun_adapt.upstream import Symbol

OTHER_CODES = ("lazy", "external", "module")
"""Kinds of which other rules speak, or which have no definition to name."""


def rule(context: Context) -> Iterable[Finding]:
    """Report re-exports and aliases, each with the definition that should be named."""
    for item in bound(context):
        symbol = item.symbol
        if symbol.kind in OTHER_CODES or symbol.inherited_from or symbol.resolved == symbol.path:
            continue
        alias = _is_alias(context, symbol)
        name = "another name of" if alias else "a re-export of"
        yield Finding.of(
            "KA108",
            f"{symbol.path} is {name} {symbol.resolved}; {_outcome(item, alias)}",
            item.position,
            binding=item.binding.binding.id,
            target=item.at.target,
            upstream=symbol.via[0] if symbol.via else symbol.location,
            suggestion=_suggestion(symbol, alias),
        )


def _is_alias(context: Context, symbol: Symbol) -> bool:
    """Tell whether the name is bound by an assignment (`name = other`), not by an import."""
    if context.reader is None:
        return False
    owner = context.facts.resolve(symbol.path.rpartition(".")[0])
    if not isinstance(owner, Symbol) or owner.kind not in ("module", "class"):
        return False
    if owner.kind == "class":
        return owner.resolved == owner.path
    table = context.reader.table(owner.resolved)
    found = table.scope.bindings.get(symbol.name, []) if table else []
    return any(item.kind == "assignment" for item in found)


def _outcome(item: Bound, alias: bool) -> str:
    if alias:
        return "only the name that stands here is bound, and who uses the other keeps upstream's"
    if not isinstance(item.binding, HookBinding):
        return "the definition is what gets patched, and no other name of it should be stated"
    if item.binding.hook.type == "set":
        return "who imports the definition keeps upstream's value"
    return "it may go while the definition stays, and a hook on both would run twice for each call"


def _suggestion(symbol: Symbol, alias: bool) -> str:
    if alias:
        return f"name the definition (target: {symbol.resolved}), or bind both names"
    return f"name the definition: target: {symbol.resolved}"

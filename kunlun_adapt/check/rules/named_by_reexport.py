"""KA108: the target is another name of what upstream defines."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from kunlun_adapt.check.context import Context
from kunlun_adapt.check.targets import Bound, bound
from kunlun_adapt.check.usage import usage_findings
from kunlun_adapt.check.wording import listed
from kunlun_adapt.diagnostics import Finding, Mend, Severity
from kunlun_adapt.plan import HookBinding
from kunlun_adapt.upstream import Location, Symbol

if TYPE_CHECKING:
    from kunlun_adapt.check.use_sites import UseSites

OTHER_CODES = ("lazy", "external", "module")
"""Kinds of which other rules speak, or which have no definition to name."""
SHOWN = 3


def rule(context: Context) -> Iterable[Finding]:
    """Report re-exports, each with the definition that should be named."""
    for item in _renamed(context):
        symbol = item.symbol
        if is_alias(context, symbol):
            continue
        missed = _importers(context, item)
        yield _finding(
            item,
            f"{symbol.path} is a re-export of {symbol.resolved}; {_outcome(item, missed)}",
            item.naming(
                symbol.resolved, f"name the definition: target: {symbol.resolved}", "defined"
            ),
            Severity.ERROR if missed else None,
        )
    yield from (finding for finding in usage_findings(context) if finding.code == "KA108")


def search(sites: UseSites) -> Iterator[Finding]:
    """Report second names (`name = other`) of what is used by its first name as well.

    A second name is bound on purpose as often as not: it is the one that upstream looks up.
    """
    context = sites.context
    for item in _renamed(context):
        if not is_alias(context, item.symbol):
            continue
        places = list(dict.fromkeys(_by_own_name(context, item.symbol)))
        if places:
            symbol = item.symbol
            yield _finding(
                item,
                f"{symbol.path} is another name of {symbol.resolved}, and only this name is bound: "
                f"{_some(places)} "
                f"{'use' if places[1:] else 'uses'} the other and keep{'' if places[1:] else 's'} "
                "upstream's",
                f"name the definition (target: {symbol.resolved}), or bind both names",
            )


def _renamed(context: Context) -> Iterator[Bound]:
    for item in bound(context):
        symbol = item.symbol
        plain = symbol.kind not in OTHER_CODES and symbol.inherited_from is None
        if plain and symbol.resolved != symbol.path:
            yield item


def is_alias(context: Context, symbol: Symbol) -> bool:
    """Tell whether the name is bound by an assignment (`name = other`), not by an import."""
    if context.reader is None:
        return False
    owner = context.facts.resolve(symbol.path.rpartition(".")[0])
    if not isinstance(owner, Symbol) or owner.kind not in ("module", "class"):
        return False
    if owner.kind == "class":
        return owner.resolved == owner.path
    # Under other guards the same name may be bound otherwise: what counts is where this one was.
    places = context.reader.assigned_at(owner.resolved, symbol.name)
    return any(place in symbol.via for place in places)


def _outcome(item: Bound, missed: list[Location]) -> str:
    if missed:
        verb = "imports" if len(missed) == 1 else "import"
        return f"{_some(missed)} {verb} the definition and would keep upstream's value"
    if not isinstance(item.binding, HookBinding):
        return "what gets patched is the definition"
    if item.binding.hook.type == "set":
        return "whoever imports the definition would keep upstream's value"
    if item.binding.hook.type in ("extend", "register"):
        return "it may go while the definition stays"
    return "it may go while the definition stays, and a hook on both would run twice for each call"


def _importers(context: Context, item: Bound) -> list[Location]:
    """Return where a value is imported from its definition, which a `set` elsewhere misses."""
    hook = item.binding
    if not isinstance(hook, HookBinding) or hook.hook.type != "set" or context.index is None:
        return []
    return [
        found.location
        for found in context.index.importers(item.symbol.resolved)
        if not found.type_checking
        and found.path == item.symbol.resolved
        and f"{found.module}.{found.name}" != item.symbol.path
    ]


def _by_own_name(context: Context, symbol: Symbol) -> Iterator[Location]:
    """Yield where the definition is used by the name that it was defined under."""
    if context.index is None or context.reader is None:
        return
    # Imported here: what the lock replays needs none of it.
    from kunlun_adapt.check.use_sites import is_test

    name = symbol.resolved.rpartition(".")[2]
    word = re.compile(rf"\b{re.escape(name)}\b".encode())
    for found in context.index.references(symbol.resolved):
        if found.kind in ("alias", "annotation") or is_test(found.module):
            continue
        source = context.reader.release.read(found.location.file) or b""
        line = source.split(b"\n")[found.location.line - 1 : found.location.line]
        if line and word.search(line[0]):
            yield found.location


def _some(places: list[Location]) -> str:
    shown = [str(place) for place in places[:SHOWN]]
    more = len(places) - SHOWN
    return listed([*shown, f"{more} more"] if more > 0 else shown)


def _finding(
    item: Bound, message: str, suggestion: Mend | str, severity: Severity | None = None
) -> Finding:
    symbol = item.symbol
    return Finding.of(
        "KA108",
        message,
        item.position,
        binding=item.binding.binding.id,
        target=item.at.target,
        upstream=symbol.via[0] if symbol.via else symbol.location,
        suggestion=suggestion,
        severity=severity,
    )

"""KA112: defined only under a guard that does not hold on the platform."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kunlun_adapt.check.context import Context
from kunlun_adapt.check.guards import can_hold, definitions, devices
from kunlun_adapt.check.targets import bound
from kunlun_adapt.check.wording import listed
from kunlun_adapt.diagnostics import Finding
from kunlun_adapt.upstream import Location, Missing, Symbol


def rule(context: Context) -> Iterable[Finding]:
    """Report targets that none of a binding's profiles has a definition of."""
    for item in bound(context):
        reports = devices(context, item.binding)
        off = _off(context, item.symbol, set(reports.values()))
        if off is None or not reports:
            continue
        guard, location = off
        where = listed([f"{name} (reports as {device})" for name, device in reports.items()])
        plural = "s" if len(reports) > 1 else ""
        yield Finding.of(
            "KA112",
            f"{item.symbol.path} exists only where `{guard}` holds, which it does not in the "
            f"profile{plural} {where}",
            item.position,
            binding=item.binding.binding.id,
            target=item.symbol.path,
            upstream=location,
            suggestion="bind what upstream runs on this platform instead, or end the range before "
            f"{context.release}",
        )


def _off(context: Context, symbol: Symbol, reports: set[str]) -> tuple[str, Location] | None:
    """Return the guard that keeps a symbol, or a class around it, from being defined."""
    guards = [item.guard for item in definitions(symbol)]
    if not any(can_hold(guard, reports) for guard in guards):
        return _named(guards), _guarded_at(context, symbol, reports)
    for owner in _owners(context, symbol):
        guards = [guard for guard, _ in owner]
        if not any(can_hold(guard, reports) for guard in guards):
            return _named(guards), owner[0][1]
    return None


def _guarded_at(context: Context, symbol: Symbol, reports: set[str]) -> Location:
    """Return the line under the guard: the import where the definition itself has none."""
    defined = context.facts.resolve(symbol.resolved) if symbol.via else symbol
    if isinstance(defined, Missing):
        return symbol.location
    there = any(can_hold(item.guard, reports) for item in definitions(defined))
    return symbol.via[0] if symbol.via and there else symbol.location


def _named(guards: list[str | None]) -> str:
    return " or ".join(dict.fromkeys(guard for guard in guards if guard))


def _owners(context: Context, symbol: Symbol) -> Iterator[tuple[tuple[str | None, Location], ...]]:
    """Yield the guards and places of the classes in which a symbol is named."""
    path = symbol.path.rpartition(".")[0]
    while path and context.reader is not None:
        owner = context.reader.guards(path)
        if not owner:
            return
        yield owner
        path = path.rpartition(".")[0]

"""KA104: the symbol is not of the kind that the binding needs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kunlun_adapt.check.context import Context
from kunlun_adapt.check.kinds import CALLABLE, kind_findings, named
from kunlun_adapt.diagnostics import Finding
from kunlun_adapt.upstream import Symbol


def rule(context: Context) -> Iterable[Finding]:
    """Report bindings whose way of binding cannot work on the kind of symbol that is there."""
    yield from kind_findings(context, "KA104")
    yield from _members(context)


def _members(context: Context) -> Iterator[Finding]:
    """A member spelled as a method must be one, and one spelled as a field must not."""
    for member in context.members:
        symbol, spelling = member.symbol, member.spelling
        if spelling is None or not isinstance(symbol, Symbol):
            continue
        is_method = symbol.kind in CALLABLE and symbol.kind != "class"
        if spelling.method and not is_method:
            wanted, other = "method", "field"
        elif spelling.field and is_method:
            wanted, other = "field", "method"
        else:
            continue
        path = context.spelling_at(member.key)
        position = context.document.at(*path, wanted) if path else member.binding.position
        yield Finding.of(
            "KA104",
            f"{named(symbol)} in sglang {context.release}, not a {wanted}",
            position,
            binding=member.binding.id,
            target=member.binding.target,
            upstream=symbol.location,
            suggestion=f"spell it `{other}: {member.name}`",
        )

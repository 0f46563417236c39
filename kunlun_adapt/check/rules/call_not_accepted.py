"""KA115: upstream calls the target in a form that our mapping of the call refuses."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from kunlun_adapt.check.context import Context
from kunlun_adapt.check.parameters import differs
from kunlun_adapt.check.usage import usage_findings
from kunlun_adapt.check.use_sites import Site, UseSites, listed
from kunlun_adapt.check.wording import mapping, scalar
from kunlun_adapt.diagnostics import Finding
from kunlun_adapt.plan import WRAPPING
from kunlun_adapt.source.signatures import ANY_VALUE
from kunlun_adapt.upstream import Location, Signature

if TYPE_CHECKING:
    from kunlun_adapt.upstream import CallForm, Reference

STYLES = (*WRAPPING, "function", "launcher")


def rule(context: Context) -> Iterable[Finding]:
    """Report calls of upstream's that our mapping of the call would refuse."""
    return (finding for finding in usage_findings(context) if finding.code == "KA115")


def search(sites: UseSites) -> Iterator[Finding]:
    """Report calls that pass another literal than the one with which a parameter is ignored."""
    for site in sites.sites:
        signature = site.symbol.signature
        if site.how not in STYLES or site.symbol.kind == "class" or signature is None:
            continue
        if not isinstance(site.at.ignores, Mapping):
            continue
        ignores = site.at.ignores
        for name, value in ignores.items():
            if value != ANY_VALUE:
                yield from _ignored(sites, site, signature, name, ignores)


def _ignored(
    sites: UseSites, site: Site, signature: Signature, name: str, ignores: Mapping[str, Any]
) -> Iterator[Finding]:
    allowed = ignores[name]
    found: dict[str, list[Location]] = {}
    for reference in sites.calls(site):
        text = _passed(reference, signature, name, site)
        if text is not None and _differs(text, allowed):
            found.setdefault(text, []).append(reference.location)
    if not found:
        return
    said = "; ".join(f"{name}={text} in {listed(places)}" for text, places in found.items())
    others = {**ignores, name: ANY_VALUE}
    yield sites.finding(
        "KA115",
        site,
        f"upstream passes {said}, and the binding ignores {name!r} only as {scalar(allowed)}",
        [place for places in found.values() for place in places],
        f"map it in `args`, or let any value pass: `ignores: {mapping(others)}`",
    )


def _passed(reference: Reference, signature: Signature, name: str, site: Site) -> str | None:
    """The expression that a call gives a parameter, None where it gives none for sure."""
    call = reference.call
    if call is None:
        return None
    if name in call.keywords:
        return call.arguments[call.positional + call.keywords.index(name)]
    if call.star:
        return None
    index = _place(reference, call, signature, name, site)
    return call.arguments[index] if index is not None else None


def _place(
    reference: Reference, call: CallForm, signature: Signature, name: str, site: Site
) -> int | None:
    plain = [p.name for p in signature.parameters if p.kind in ("positional_only", "positional")]
    if name not in plain:
        return None
    index = plain.index(name)
    through_class = reference.through_class and site.symbol.kind == "method"
    if site.symbol.kind in ("method", "classmethod") and not through_class:
        index -= 1
    return index if 0 <= index < call.positional else None


def _differs(text: str, allowed: Any) -> bool:
    """Whether an expression is a literal other than the allowed value."""
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return False  # what a name holds, the text does not tell
    return differs(value, allowed)

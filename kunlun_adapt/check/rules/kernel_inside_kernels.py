"""KA120: only other Triton kernels call the target, so no binding from Python reaches it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from kunlun_adapt.check.context import Context
from kunlun_adapt.check.usage import usage_findings
from kunlun_adapt.check.use_sites import UseSites, is_test, listed
from kunlun_adapt.diagnostics import Finding
from kunlun_adapt.upstream import Symbol

if TYPE_CHECKING:
    from kunlun_adapt.upstream import Index, Reference


def rule(context: Context) -> Iterable[Finding]:
    """Report Triton kernels that no Python code calls."""
    return (finding for finding in usage_findings(context) if finding.code == "KA120")


def search(sites: UseSites) -> Iterator[Finding]:
    """Report Triton kernels whose every use is a call from inside another kernel."""
    for site in sites.sites:
        if site.symbol.kind != "triton_kernel":
            continue
        callers = inside_kernels(sites.index, site.symbol.path)
        if callers:
            places = [reference.location for reference in callers]
            yield sites.finding(
                "KA120",
                site,
                f"only Triton kernels call {site.symbol.name} ({listed(places)}), and these are "
                "compiled from their source: what Python binds to the name does not reach them",
                places,
                "bind the kernels that upstream launches: "
                f"{', '.join(sorted({r.scope for r in callers}))}",
            )


def inside_kernels(index: Index, path: str) -> tuple[Reference, ...]:
    """The calls of a kernel where all of them come from other kernels; else nothing."""
    found = [r for r in index.references(path) if not is_test(r.module)]
    inside = [r for r in found if r.kind == "call" and _is_kernel(index, r)]
    return tuple(inside) if len(inside) == len(found) else ()


def _is_kernel(index: Index, reference: Reference) -> bool:
    if not reference.scope:
        return False
    around = index.resolver.resolve(f"{reference.module}.{reference.scope}")
    return isinstance(around, Symbol) and around.kind == "triton_kernel"

"""KA119: nothing in upstream uses the target, so binding it changes nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from kunlun_adapt.check.context import Context
from kunlun_adapt.check.proposed import leave_out
from kunlun_adapt.check.usage import usage_findings
from kunlun_adapt.check.use_sites import Site, UseSites, is_test
from kunlun_adapt.diagnostics import Finding

if TYPE_CHECKING:
    from kunlun_adapt.upstream import Reference

_HANDED_ON = re.compile(rb"__all__\s*\+?=\s*[\[(].*?[\])]", re.DOTALL)

LOOKED_AT = (
    *("before", "after", "around", "replace", "set", "extend"),
    *("function", "launcher", "oot_forward"),
)
"""What `add` adds and `register` calls is not upstream's to use."""


def rule(context: Context) -> Iterable[Finding]:
    """Report targets that nothing in upstream uses."""
    for finding in usage_findings(context):
        if finding.code == "KA119":
            # The range depends on what is locked, so it is not held in the lock with the rest.
            tip = (
                f"{finding.suggestion}, or leave it out: {leave_out(context, finding.binding).text}"
            )
            yield replace(finding, suggestion=tip)


def search(sites: UseSites) -> Iterator[Finding]:
    """Report targets without a caller, subclass, instance or any mention outside of tests."""
    suspects = [s for s in sites.sites if s.how in LOOKED_AT and not _is_used(sites, s)]
    mentioned = _mentioned(sites, {_name(site) for site in suspects})
    for site in suspects:
        if _name(site) not in mentioned:
            what = "calls or names" if site.symbol.kind != "class" else "makes or derives from"
            yield sites.finding(
                "KA119",
                site,
                f"nothing in sglang {sites.context.release} {what} {_name(site)} outside of tests",
                [site.symbol.location],
                "bind what upstream uses instead",
            )


def _name(site: Site) -> str:
    return site.owner.rpartition(".")[2] if _lies_idle(site) else site.symbol.name


def _lies_idle(site: Site) -> bool:
    """Whether a member is judged by its class: what a framework calls has no caller here."""
    name = site.symbol.name
    return bool(site.owner) and name.startswith(("__", "forward"))


def _is_used(sites: UseSites, site: Site) -> bool:
    own = site.symbol.qualname
    path = site.owner if _lies_idle(site) else site.symbol.path
    if site.symbol.kind == "property":
        return True  # reading an attribute looks the same whatever the object
    if site.owner and not _lies_idle(site):
        calls = sites.index.calling(site.symbol.name)
        return any(not is_test(module) for module in calls) or bool(sites.references(site))
    symbol = sites.index.resolver.resolve(path)
    found = [r for r in sites.index.references(path) if not is_test(r.module)]
    module = getattr(symbol, "module", "")
    return any(r.kind != "annotation" and not _within(r, module, own) for r in found)


def _within(reference: Reference, module: str, qualname: str) -> bool:
    """Whether a use stands inside the definition itself, as in a recursion."""
    scope = reference.scope
    return reference.module == module and (scope == qualname or scope.startswith(f"{qualname}."))


def _mentioned(sites: UseSites, names: set[str]) -> set[str]:
    """The names that stand in a string somewhere: upstream may look them up by it."""
    found: set[str] = set()
    if not names:
        return found
    words = "|".join(re.escape(name) for name in sorted(names))
    pattern = re.compile(rf"[\"'.:]({words})[\"']".encode())
    release = sites.index.resolver.release
    for module in sites.index.modules:
        file = sites.index.file(module)
        if file is None or is_test(module):
            continue
        source = release.read(file) or b""
        for match in pattern.finditer(_HANDED_ON.sub(b"", source)):
            found.add(match[1].decode())
    return found

"""Warnings that a binding's author has looked at and accepted, with the reason."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from kunlun_adapt.check.context import Context
from kunlun_adapt.diagnostics import Finding, Severity
from kunlun_adapt.documents import in_range
from kunlun_adapt.documents.platform_map import Accept
from kunlun_adapt.plan import bind_groups

PLATFORM = ("factory/", "method/")
"""How the bindings of the platform itself are called: the map accepts what is said of them."""


def accepted(context: Context, findings: Iterable[Finding]) -> Iterator[Finding]:
    """Turn each accepted warning into information that says why it was accepted.

    An error stays one: what cannot work does not work better for a reason. What the map accepts at
    its top holds for findings about the platform, and for those about no binding.
    """
    reasons = {
        (binding, accept.code): accept.why
        for binding, accepts in _accepts(context)
        for accept in accepts
        if in_range(accept.sglang, context.release)
    }
    for finding in findings:
        why = reasons.get((finding.binding or "", finding.code))
        if why is None and (finding.binding or PLATFORM[0]).startswith(PLATFORM):
            why = reasons.get(("", finding.code))
        if why is None or finding.severity is not Severity.WARNING:
            yield finding
        else:
            message = f"{finding.message} (accepted: {why})"
            yield replace(finding, severity=Severity.INFO, message=message, suggestion=None)


def _accepts(context: Context) -> Iterator[tuple[str, list[Accept]]]:
    yield "", context.map.accepts
    # Of all bindings: that one leaves the release out may be what is accepted.
    for entry in context.catalog.hooks:
        yield entry.hook.id, entry.hook.accepts
    for recipe in context.operators:
        for id, indexes in bind_groups(recipe.model).items():
            for index in indexes:
                yield id, recipe.model.binds[index].accepts

"""Warnings that a binding's author has looked at and accepted, with the reason."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from kunlun_adapt.check.context import Context
from kunlun_adapt.diagnostics import Finding, Severity
from kunlun_adapt.documents import Document, in_range
from kunlun_adapt.documents.platform_map import Accept
from kunlun_adapt.plan import bind_groups

PLATFORM = ("factory/", "method/")
"""How the bindings of the platform itself are called: the map accepts what is said of them."""


@dataclass(frozen=True, slots=True)
class Acceptances:
    """What is accepted of one binding, and where; an empty name stands for the platform."""

    binding: str
    accepts: list[Accept]
    document: Document[Any]
    path: tuple[str | int, ...]


def accepted(context: Context, findings: Iterable[Finding]) -> Iterator[Finding]:
    """Turn each accepted warning into information that says why it was accepted.

    An error stays one: what cannot work does not work better for a reason. What the map accepts at
    its top holds for findings about the platform, and for those about no binding.
    """
    reasons = {
        (said.binding, accept.code): accept.why
        for said in acceptances(context)
        for accept in said.accepts
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


def acceptances(context: Context) -> Iterator[Acceptances]:
    """Yield every list of accepted warnings in the workspace.

    Of all bindings: that one leaves the release out may be what is accepted.
    """
    yield Acceptances("", context.map.accepts, context.document, ("accepts",))
    for entry in context.catalog.hooks:
        where = (*entry.path, "accepts")
        yield Acceptances(entry.hook.id, entry.hook.accepts, entry.document, where)
    for recipe in context.operators:
        for id, indexes in bind_groups(recipe.model).items():
            for index in indexes:
                accepts = recipe.model.binds[index].accepts
                yield Acceptances(id, accepts, recipe, ("binds", index, "accepts"))

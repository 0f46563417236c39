"""Warnings that a binding's author has looked at and accepted, with the reason."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from kunlun_adapt.check.context import Context
from kunlun_adapt.diagnostics import Finding, Severity
from kunlun_adapt.documents import in_range
from kunlun_adapt.documents.platform_map import Accept


def accepted(context: Context, findings: Iterable[Finding]) -> Iterator[Finding]:
    """Turn each accepted warning into information that says why it was accepted.

    An error stays one: what cannot work does not work better for a reason.
    """
    reasons = {
        (binding, accept.code): accept.why
        for binding, accepts in _accepts(context)
        for accept in accepts
        if in_range(accept.sglang, context.release)
    }
    for finding in findings:
        why = reasons.get((finding.binding or "", finding.code))
        if why is None or finding.severity is not Severity.WARNING:
            yield finding
        else:
            message = f"{finding.message} (accepted: {why})"
            yield replace(finding, severity=Severity.INFO, message=message, suggestion=None)


def _accepts(context: Context) -> Iterator[tuple[str, list[Accept]]]:
    for hook in context.hooks:
        yield hook.binding.id, hook.hook.accepts
    for kernel in context.kernels:
        yield kernel.binding.id, kernel.bind.accepts

"""KA110: what is hooked or called cannot be called."""

from __future__ import annotations

from collections.abc import Iterable

from kunlun_adapt.check.context import Context
from kunlun_adapt.check.kinds import kind_findings
from kunlun_adapt.diagnostics import Finding


def rule(context: Context) -> Iterable[Finding]:
    """Report modules that are hooked, and values that an operator or a registration would call."""
    return kind_findings(context, "KA110")

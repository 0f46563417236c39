"""KA122: a call hook on a constant, list or registry."""

from __future__ import annotations

from collections.abc import Iterable

from kunlun_adapt.check.context import Context
from kunlun_adapt.check.kinds import kind_findings
from kunlun_adapt.diagnostics import Finding


def rule(context: Context) -> Iterable[Finding]:
    """Report before, after, around and replace hooks on what holds a value."""
    return kind_findings(context, "KA122")

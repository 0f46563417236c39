"""KA111: a hook type that breaks this kind of member."""

from __future__ import annotations

from collections.abc import Iterable

from kunlun_adapt.check.context import Context
from kunlun_adapt.check.kinds import kind_findings
from kunlun_adapt.diagnostics import Finding


def rule(context: Context) -> Iterable[Finding]:
    """Report members of classes that a hook would turn into something else."""
    return kind_findings(context, "KA111")

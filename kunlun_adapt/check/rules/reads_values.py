"""KA311: a condition that would wait for the device."""

from __future__ import annotations

from collections.abc import Iterable

from kunlun_adapt.check.context import Context
from kunlun_adapt.check.tables import analysed, binding_of
from kunlun_adapt.diagnostics import Finding


def rule(context: Context) -> Iterable[Finding]:
    """Report conditions, formulas and reads that ask for what a tensor holds."""
    for item in analysed(context):
        for fault in (f for f in item.faults if f.values):
            yield Finding.of(
                "KA311",
                fault.message,
                fault.position,
                binding=binding_of(context, item.recipe),
                suggestion=fault.suggestion,
            )

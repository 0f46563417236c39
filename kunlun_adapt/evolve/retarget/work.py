"""One ranged entry on its way to the new release."""

from __future__ import annotations

from dataclasses import dataclass

from kunlun_adapt.diagnostics import Finding
from kunlun_adapt.evolve.retarget.groups import Group
from kunlun_adapt.evolve.retarget.parts import Part
from kunlun_adapt.evolve.retarget.placing import Ranges
from kunlun_adapt.evolve.retarget.result import Account


@dataclass(slots=True)
class Work:
    """One entry on the way: what it needs, where it would hold, and what became of it."""

    group: Group
    parts: list[Part]
    blocked: list[Finding]
    ranges: Ranges | None = None
    account: Account | None = None
    unused: Part | None = None
    """What to do where nothing in the new release uses its target."""
    chosen: bool = False

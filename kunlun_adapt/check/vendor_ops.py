"""The vendor ops that are known by name: those whose contract the simulator holds calls to."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from kunlun_adapt.documents import load_file

CONTRACTS = Path(__file__).resolve().parent.parent / "simulator" / "contracts"


@cache
def vendor_ops() -> frozenset[str]:
    """Return the full names of all ops with a contract, such as `kunlun_ops.rmsnorm`."""
    names: set[str] = set()
    for path in CONTRACTS.glob("*.yaml"):
        for raw in load_file(path, path.name)[0]:
            names |= {str(contract["op"]) for contract in raw.data["ops"]}
    return frozenset(names)

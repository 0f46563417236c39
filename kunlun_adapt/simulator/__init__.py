"""The vendor runtime's stand-in: what SGLang and the adapters need to run on a host without a card.

Two independent parts live here.

* ``standin_paths()`` names folders for ``PYTHONPATH`` that hold packages which SGLang imports
  before any platform is resolved (``triton``, ``torchvision``), for hosts that lack the real ones.
* ``install()`` puts simulated vendor modules (``kunlun_ops`` and friends) into ``sys.modules``;
  each simulated op checks its call against a contract and computes with the golden.

Importing this package needs neither torch nor SGLang.
"""

from __future__ import annotations

from pathlib import Path

from kunlun_adapt.simulator._paths import StandinReport, standin_paths, standin_report
from kunlun_adapt.simulator.vendor import (
    VENDOR_MODULES,
    InstallReport,
    VendorPresentError,
    install,
)

STANDINS = Path(__file__).resolve().parent / "standins"

__all__ = [
    "STANDINS",
    "VENDOR_MODULES",
    "InstallReport",
    "StandinReport",
    "VendorPresentError",
    "install",
    "standin_paths",
    "standin_report",
]

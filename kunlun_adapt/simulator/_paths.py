"""Decide which stand-in packages a host needs, by trying the real ones first."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from importlib.machinery import PathFinder
from pathlib import Path

_ROOT = Path(__file__).resolve().parent / "standins"

# What SGLang takes from the package at import time; a real package that cannot even give this
# (a torchvision built for another torch raises on import) is as good as absent.
_PROBES: dict[str, str] = {
    "triton": "import triton, triton.language",
    "torchvision": "import torchvision.transforms; from torchvision.io import decode_jpeg",
}


@dataclass(frozen=True, slots=True)
class StandinReport:
    """What was found for one package: whether the stand-in is used, and why."""

    package: str
    folder: str
    used: bool
    why: str


def standin_report() -> list[StandinReport]:
    """Say for each package whether its stand-in is needed on this host and why."""
    return [_report(package) for package in _PROBES]


def standin_paths() -> list[str]:
    """Return the folders to put on PYTHONPATH, only for packages that are absent or broken here."""
    return [report.folder for report in standin_report() if report.used]


@cache
def _report(package: str) -> StandinReport:
    folder = str(_ROOT / package)
    if not _really_installed(package):
        return StandinReport(package, folder, True, f"{package} is not installed")
    env = dict(os.environ)
    env["PYTHONPATH"] = os.pathsep.join(_path_without_standins())
    probe = subprocess.run(
        [sys.executable, "-c", _PROBES[package]],
        env=env,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    if probe.returncode == 0:
        return StandinReport(package, folder, False, f"the installed {package} imports")
    last = (probe.stderr.strip().splitlines() or ["no message"])[-1]
    return StandinReport(package, folder, True, f"the installed {package} does not import: {last}")


def _really_installed(package: str) -> bool:
    return PathFinder.find_spec(package, _path_without_standins()) is not None


def _path_without_standins() -> list[str]:
    return [
        entry for entry in sys.path if entry and _ROOT not in [Path(entry), *Path(entry).parents]
    ]

"""Processes of the installed SGLang with the plugin: seconds, where a server takes a minute."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from kunlun_adapt.simulator import standin_paths
from tests.runtime.stage import ROOT


def run_installed(
    code: str, workspace: Path, cache: Path, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run `code` with the simulator and a workspace's documents; assert that it ended well."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([*standin_paths(), str(ROOT)]),
            "KUNLUN_ADAPT_WORKSPACE": str(workspace),
            "KUNLUN_ADAPT_CACHE": str(cache),
            "KUNLUN_ADAPT_SIMULATOR": "1",
            "SGLANG_PLATFORM": "kunlun",
            "HF_HUB_OFFLINE": "1",
            **environment,
        },
        cwd=cache.parent,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done


def models_but(*kept: str) -> str:
    """Return upstream's own list of model modules to leave out: importing them all takes long."""
    spec = find_spec("sglang")
    assert spec is not None and spec.submodule_search_locations
    tree = Path(spec.submodule_search_locations[0]) / "srt" / "models"
    return ",".join(p.stem for p in sorted(tree.glob("*.py")) if p.stem not in ("registry", *kept))

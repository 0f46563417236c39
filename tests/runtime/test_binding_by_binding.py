"""What a process binds at import is what `render` puts on disk, binding by binding."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from kunlun_adapt.simulator import standin_paths
from tests.runtime.stage import ROOT

SCRIPT = "tests.runtime.bindings_here"
PROFILE = "simulator"


def run(tmp_path: Path, arguments: list[str], **environment: str) -> str:
    path = [*standin_paths(), *environment.pop("FIRST", "").split(), str(ROOT)]
    done = subprocess.run(
        [sys.executable, *arguments],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(path),
            "KUNLUN_ADAPT_WORKSPACE": str(ROOT),
            "KUNLUN_ADAPT_CACHE": str(tmp_path / "cache"),
            "HF_HUB_OFFLINE": "1",
            "OMP_NUM_THREADS": "1",
            **environment,
        },
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done.stdout


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    tmp_path = tmp_path_factory.mktemp("both")
    folder = tmp_path / "disk" / "kunlun_adapt_generated"
    release = version("sglang")
    render = ["render", "--sglang", "installed", "--profile", PROFILE, "--out", str(folder)]
    run(tmp_path, ["-m", "kunlun_adapt", *render])
    names = [f.relative_to(folder).with_suffix("").as_posix() for f in folder.rglob("*.py")]
    arguments = [str(ROOT), release, ",".join(sorted(names))]
    # In the second process no door may open: what is on disk is all that there is.
    away = {"SGLANG_PLATFORM": "", "SGLANG_PLUGINS": "none_of_ours"}
    doors = {"SGLANG_PLATFORM": "kunlun", "KUNLUN_ADAPT_SIMULATOR": "1"}
    disk = run(tmp_path, ["-m", SCRIPT, "disk", *arguments], FIRST=str(folder.parent), **away)
    imported = run(tmp_path, ["-m", SCRIPT, "imported", *arguments], **doors)
    return {
        "disk": json.loads(disk.splitlines()[-1]),
        "imported": json.loads(imported.splitlines()[-1]),
    }


@pytest.mark.server
@pytest.mark.parametrize("part", ["modules", "installs", "readers", "platform", "results"])
def test_both_ways_are_the_same(both: dict[str, dict[str, Any]], part: str) -> None:
    assert both["imported"][part] == both["disk"][part]


@pytest.mark.server
def test_nothing_was_left_out(both: dict[str, dict[str, Any]]) -> None:
    said = both["imported"]
    installed = said["installs"]["bindings"]
    bound = {call[1][0] for call in installed if call[0] in ("function", "oot_forward", "own")}
    assert len(bound) >= 20 and len(said["installs"]["hooks"]) >= 5
    assert len(said["readers"]) >= 4 and len(said["results"]) >= len(bound)
    operators = {name.partition(".")[0] for name in said["results"]}
    assert operators == {n.partition("/")[2] for n in said["modules"] if n.startswith("operators/")}

"""The built wheel wakes up in SGLang like the checkout does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kunlun_adapt.simulator import standin_paths
from tests.packaging.conftest import run

pytestmark = [pytest.mark.server, pytest.mark.torch]

PROGRAM = """
import json, pathlib
import kunlun_adapt, sglang.srt.utils.common, sglang.srt.platforms as platforms
from sglang.srt.plugins import load_plugins
load_plugins()
from kunlun_adapt.runtime import ledger
seen = ledger.snapshot()
print(json.dumps({
    "package": str(pathlib.Path(kunlun_adapt.__file__).parent),
    "platform": type(platforms.current_platform).__qualname__,
    "device": platforms.current_platform.device_name,
    "workspace": seen["workspace"],
    "states": {b["id"]: b["state"] for b in seen["bindings"]},
}))
"""


@pytest.fixture(scope="module")
def unpacked(distributions: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("unpacked")
    pip = [sys.executable, "-m", "pip", "install", "-qq", "--no-deps", "--target", str(folder)]
    done = run([*pip, str(distributions[1])], folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_the_wheel_activates_like_the_checkout(unpacked: Path, tmp_path: Path) -> None:
    wheel, checkout = _activate([str(unpacked)], tmp_path), _activate([], tmp_path)
    assert wheel["package"] == str(unpacked / "kunlun_adapt")
    assert wheel["workspace"] == str(unpacked / "kunlun_adapt" / "workspace")
    assert checkout["package"] != wheel["package"]
    assert (wheel["platform"], wheel["device"]) == ("KunlunPlatform", "kunlun")
    assert wheel["states"] == checkout["states"]
    assert "failed" not in wheel["states"].values()
    assert wheel["states"]["attention-backend-choice"] == "applied"


def _activate(first: list[str], folder: Path) -> dict[str, object]:
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("KUNLUN_ADAPT_")
    }
    environment |= {
        "PYTHONPATH": os.pathsep.join([*first, *standin_paths()]),
        "KUNLUN_ADAPT_SIMULATOR": "1",
        "KUNLUN_ADAPT_CACHE": str(folder / "cache"),
        "SGLANG_PLATFORM": "kunlun",
    }
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return found

"""The command lines of the benchmarks; what they measure is for no test to say."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SCRIPTS = ("commands", "dispatch", "index", "plugin_start", "start", "tokens")


def end(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, f"benchmarks/{script}.py", *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("script", SCRIPTS)
def test_help_says_what_is_measured_and_needs_nothing(script: str) -> None:
    done = end(script, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    text = (ROOT / "benchmarks" / f"{script}.py").read_text(encoding="utf-8")
    first = text.removeprefix('"""').partition("\n")[0].removesuffix('"""')
    assert f"\n{first}\n" in done.stdout


@pytest.mark.parametrize(
    ("script", "given", "said"),
    [
        ("dispatch", "2", "'2' is no number of at least 3"),
        ("tokens", "1", "'1' is no number of at least 3"),
        ("plugin_start", "none", "'none' is no number of at least 1"),
        ("start", "5", "unrecognized arguments: 5"),
        ("commands", "5", "unrecognized arguments: 5"),
    ],
)
def test_what_cannot_be_measured_is_refused(script: str, given: str, said: str) -> None:
    done = end(script, given)
    assert done.returncode == 2 and said in done.stderr and "Traceback" not in done.stderr

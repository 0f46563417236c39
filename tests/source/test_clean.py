"""The generated modules pass the linter and the type checker that our own modules pass."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.source.conftest import ROOT, Compile

RELEASES = ("0.5.17", "0.5.19", "0.5.23")


@pytest.fixture
def written(compiled: Compile, tmp_path: Path) -> Path:
    for release in RELEASES:
        for profile in ("card", "simulator"):
            for name, text in compiled(release, profile).modules.items():
                path = tmp_path / release / profile / f"{name}.py"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
    return tmp_path


@pytest.mark.skipif(find_spec("ruff") is None, reason="ruff is not installed")
def test_ruff_has_nothing_to_say(written: Path) -> None:
    check = ["ruff", "check", "--no-cache", "--config", str(ROOT / "pyproject.toml"), str(written)]
    result = subprocess.run([sys.executable, "-m", *check], capture_output=True, text=True)
    assert result.returncode == 0, result.stdout


@pytest.mark.skipif(find_spec("mypy") is None, reason="mypy is not installed")
def test_mypy_has_nothing_to_say(written: Path) -> None:
    """SGLang ships no types, so what comes from it is Any; the rest is checked, bodies too."""
    options = [
        "--check-untyped-defs", "--explicit-package-bases", "--ignore-missing-imports",
        "--follow-imports=silent", "--disable-error-code=annotation-unchecked",
        "--no-site-packages", "--cache-dir", str(written / "cache"), "--config-file=",
    ]  # fmt: skip
    result = subprocess.run(
        [sys.executable, "-m", "mypy", *options, "card", "simulator"],
        capture_output=True, text=True, cwd=written / "0.5.19",
        env={**os.environ, "MYPYPATH": str(ROOT)},
    )  # fmt: skip
    assert result.returncode == 0, result.stdout + result.stderr

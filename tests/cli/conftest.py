"""The command line as a user calls it, in this process."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from kunlun_adapt.cli import app

ROOT = Path(__file__).resolve().parents[2]

Run = Callable[..., Result]
Edit = Callable[..., Path]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.delenv("KUNLUN_ADAPT_WORKSPACE", raising=False)
    runner = CliRunner()

    def call(*arguments: str) -> Result:
        return runner.invoke(app, [str(a) for a in arguments])

    return call


@pytest.fixture
def edit(tmp_path: Path) -> Edit:
    """Copy the shipped workspace with texts of one file replaced."""

    def replace(replacements: dict[str, str], file: str = "platform_map.yaml") -> Path:
        root = tmp_path / "workspace"
        if not root.exists():
            root.mkdir()
            for name in ("operator_recipes", "recipes", "templates"):
                shutil.copytree(ROOT / name, root / name)
            for name in ("platform_map.yaml", "adapt.lock"):
                shutil.copy(ROOT / name, root / name)
        path = root / file
        text = path.read_text(encoding="utf-8")
        for old, new in replacements.items():
            assert old in text, old
            text = text.replace(old, new, 1)
        path.write_text(text, encoding="utf-8")
        return root

    return replace

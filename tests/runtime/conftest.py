"""The stage of the runtime tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.runtime.stage import Stage


@pytest.fixture
def stage(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Stage:
    # Tests with the same texts find each other's: compiling is what takes the time.
    return Stage(tmp_path, tmp_path_factory.getbasetemp() / "generated")

"""torch.compile takes every generated dispatch function whole: no break, no recompile per call."""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.runtime.installed import run_installed
from tests.runtime.stage import ROOT


@pytest.mark.server
def test_every_dispatch_function_is_compiled_whole(tmp_path: Path) -> None:
    code = (
        f"from tests.runtime.compile_here import main\nmain({str(ROOT)!r}, {version('sglang')!r})\n"
    )
    done = run_installed(code, ROOT, tmp_path / "cache", OMP_NUM_THREADS="1")
    said = json.loads(done.stdout.splitlines()[-1])
    assert len(said) >= 30
    assert {name: wrong for name, wrong in said.items() if wrong} == {}

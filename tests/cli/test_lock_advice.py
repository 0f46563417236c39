"""What is advised where the lock lacks a release: the command can be pasted, and settles it."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.check.bench import Bench
from tests.cli.conftest import Run


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A small workspace without a lock, beside the release that it is for."""
    bench = Bench(tmp_path)
    bench.catalog()
    bench.resolver()
    return tmp_path / "workspace"


def lacking(run: Run, workspace: Path, source: str) -> list[dict[str, Any]]:
    arguments = ("--workspace", workspace, "--sglang", source, "--format", "json")
    report = json.loads(run("validate", *arguments).stdout)["releases"][0]
    return [f for f in report["findings"] if f["code"] == "KA107"]


def settled(run: Run, workspace: Path, source: str) -> str:
    """Paste the advice; return the release that the lock then holds."""
    (finding,) = lacking(run, workspace, source)
    advice = finding["suggestion"]
    assert advice == "run " + shlex.join(
        ["kunlun-adapt", "lock", "--workspace", str(workspace), "--sglang", source]
    )
    result = run(*shlex.split(advice)[2:])
    assert result.exit_code == 0, result.output
    assert lacking(run, workspace, source) == []
    return result.output.rpartition("releases ")[2].strip()


@pytest.mark.parametrize("name", ["release", "a release"])
def test_a_folder(run: Run, workspace: Path, name: str) -> None:
    shutil.move(workspace.parent / "release", folder := workspace.parent / name)
    assert settled(run, workspace, str(folder)) == "0.5.19"


def test_a_git_revision(run: Run, workspace: Path) -> None:
    folder = workspace.parent / "release"
    who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    commands = [("init", "-q"), ("add", "."), (*who, "commit", "-q", "-m", "one")]
    commands += [("tag", "v0.5.20"), (*who, "commit", "-q", "--allow-empty", "-m", "two")]
    for arguments in commands:
        subprocess.run(["git", "-C", str(folder), *arguments], check=True)
    assert settled(run, workspace, f"git:{folder}@HEAD").startswith("0.5.20+1.g")


def test_what_drifted_is_locked_from_where_it_was_read(run: Run, workspace: Path) -> None:
    folder = workspace.parent / "release"
    settled(run, workspace, str(folder))
    common = folder / "sglang" / "srt" / "utils" / "common.py"
    common.write_text(common.read_text(encoding="utf-8").replace("return gpu_id", "return 1"))
    arguments = ("--workspace", workspace, "--sglang", folder, "--format", "json")
    findings = json.loads(run("validate", *arguments).stdout)["releases"][0]["findings"]
    (found,) = [f for f in findings if f["code"] == "KA106"]
    assert found["suggestion"].endswith(f"--sglang {folder}")

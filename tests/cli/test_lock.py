"""`lock` on a lock that a merge left broken, and where it must not write."""

from __future__ import annotations

from pathlib import Path

import pytest

from kunlun_adapt.upstream import read_lock
from tests.cli.conftest import ROOT, Edit, Run

CONFLICT = "<<<<<<< HEAD\n"


@pytest.fixture
def broken(edit: Edit) -> Path:
    root = edit({})
    with (root / "adapt.lock").open("a", encoding="utf-8") as stream:
        stream.write(CONFLICT)
    return root


@pytest.mark.parametrize(
    "command",
    [("validate", "--sglang", "0.5.19"), ("lock",), ("lock", "--check", "--sglang", "0.5.19")],
)
def test_the_advice_on_a_broken_lock_is_one_that_works(
    run: Run, broken: Path, command: tuple[str, ...]
) -> None:
    before = (broken / "adapt.lock").read_bytes()
    result = run(*command, "--workspace", broken)
    assert result.exit_code == 2
    assert "kunlun-adapt lock --sglang 0.5.17 --sglang 0.5.19 --sglang 0.5.23" in result.stderr
    assert (broken / "adapt.lock").read_bytes() == before


@pytest.mark.upstream
def test_lock_starts_anew_from_a_broken_lock(run: Run, broken: Path) -> None:
    releases = ("0.5.17", "0.5.19", "0.5.23")
    asked = [part for release in releases for part in ("--sglang", release)]
    result = run("lock", *asked, "--workspace", broken)
    assert result.exit_code == 0
    assert "starting from an empty lock; the old one named 0.5.17, 0.5.19, 0.5.23" in result.stderr
    assert (broken / "adapt.lock").read_bytes() == (ROOT / "adapt.lock").read_bytes()
    assert read_lock(broken / "adapt.lock").releases == releases


@pytest.mark.parametrize("command", ["list", "lock"])
def test_a_lock_that_is_no_file(run: Run, edit: Edit, command: str) -> None:
    root = edit({})
    (root / "adapt.lock").unlink()
    (root / "adapt.lock").mkdir()
    arguments = ("list", "releases") if command == "list" else ("lock", "--sglang", "0.5.19")
    result = run(*arguments, "--workspace", root)
    assert result.exit_code == 2 and "adapt.lock is not a regular file" in result.stderr


def test_lock_does_not_write_into_the_installed_package(
    run: Run, edit: Edit, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = edit({"common.support_triton,": "common.is_cuda,"})
    before = (root / "adapt.lock").read_bytes()
    monkeypatch.setattr("kunlun_adapt.locate.SHIPPED", (root, ROOT))
    for arguments in (("--workspace", str(root)), ()):
        monkeypatch.chdir(root.parent)
        result = run("lock", "--sglang", "0.5.19", *arguments)
        assert result.exit_code == 2 and "belongs to the installed package" in result.stderr
        assert "--workspace DIR" in result.stderr
    assert (root / "adapt.lock").read_bytes() == before

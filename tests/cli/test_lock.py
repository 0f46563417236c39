"""`lock` on a lock that a merge left broken, and where it must not write."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kunlun_adapt.upstream import read_lock
from tests.cli.conftest import ROOT, Edit, Run

CONFLICT = "<<<<<<< HEAD\n"
RELEASES = read_lock(ROOT / "adapt.lock").releases


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
    named = " ".join(f"--sglang {release}" for release in RELEASES)
    assert f"kunlun-adapt lock {named}" in result.stderr
    assert (broken / "adapt.lock").read_bytes() == before


@pytest.mark.upstream
def test_lock_starts_anew_from_a_broken_lock(run: Run, broken: Path) -> None:
    releases = ("0.5.19",)
    asked = [part for release in releases for part in ("--sglang", release)]
    result = run("lock", *asked, "--workspace", broken)
    assert result.exit_code == 0
    assert f"starting from an empty lock; the old one named {', '.join(RELEASES)}" in result.stderr
    assert rows_of(broken, releases) == rows_of(ROOT, releases)


def rows_of(root: Path, releases: tuple[str, ...]) -> list[dict[str, Any]]:
    """What a lock says of some releases, but where they have the bodies that others had."""
    lines = (root / "adapt.lock").read_text(encoding="utf-8").splitlines()
    rows = [row for row in map(json.loads, lines) if row.get("release") in releases]
    for row in rows:
        row.pop("bodies", None)
    return rows
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

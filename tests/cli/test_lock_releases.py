"""`lock` on releases that can be had again and on others, what `--check` says, `--drop`."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from kunlun_adapt.upstream import ReleaseError, open_release, read_lock
from tests.check.bench import MAP, Bench
from tests.cli.conftest import Run
from tests.upstream.test_git_store import git

COMMON = "sglang/srt/utils/common.py"
PINNED = "sglang.srt.utils.common.set_affinity"

Lock = Callable[..., Result]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    bench = Bench(tmp_path)
    bench.catalog()
    bench.resolver()
    return bench


@pytest.fixture
def lock(bench: Bench, run: Run, monkeypatch: pytest.MonkeyPatch) -> Lock:
    """The command, with an index that has 0.5.19 alone."""
    release = bench.root / "release"

    def obtain(spec: str, **_: bool) -> object:
        if spec in ("0.5.17", "0.5.20"):
            raise ReleaseError(f"no index has sglang {spec}")
        return open_release(str(release) if spec == "0.5.19" else spec)

    monkeypatch.setattr("kunlun_adapt.cli.lock.obtain", obtain)

    def call(*arguments: str) -> Result:
        return run("lock", *arguments, "--workspace", bench.root / "workspace")

    return call


def held(bench: Bench) -> tuple[str, ...]:
    return read_lock(bench.root / "workspace" / "adapt.lock").releases


def clone(bench: Bench, version: str = "") -> str:
    """A clone one commit after a tag, by the name of the release."""
    path = bench.root / "clone"
    shutil.copytree(bench.root / "release", path)
    git(path, "init", "-q")
    git(path, "add", ".")
    git(path, "commit", "-q", "-m", "start")
    git(path, "tag", "v0.5.20")
    (path / "README").write_text("more", encoding="utf-8")
    git(path, "add", ".")
    git(path, "commit", "-q", "-m", "more")
    return f"git:{path}@HEAD{version}"


def test_a_git_revision_is_kept_when_all_is_locked_again(bench: Bench, lock: Lock) -> None:
    assert lock("--sglang", "0.5.19", "--sglang", clone(bench)).exit_code == 0
    releases = held(bench)
    assert len(releases) == 2 and releases[1].startswith("0.5.20+1.g")
    path = bench.root / "workspace" / "adapt.lock"
    before = path.read_bytes()
    again = lock()
    assert again.exit_code == 0 and path.read_bytes() == before
    assert f"sglang {releases[1]}: kept as it was" in again.stderr
    assert "--sglang git:PATH@REV" in again.stderr
    check = lock("--check")
    assert check.exit_code == 0 and f"sglang {releases[1]}: not checked" in check.stderr
    dropped = lock("--drop", releases[1])
    assert dropped.exit_code == 0 and held(bench) == ("0.5.19",)


def test_a_release_that_no_index_has_is_kept_and_keeps_the_check_from_passing(
    bench: Bench, lock: Lock
) -> None:
    spec = clone(bench, "@0.5.20")
    assert lock("--sglang", "0.5.19", "--sglang", spec).exit_code == 0
    assert held(bench) == ("0.5.19", "0.5.20")
    again = lock()
    assert again.exit_code == 0 and "no index has sglang 0.5.20" in again.stderr
    assert held(bench) == ("0.5.19", "0.5.20")
    check = lock("--check")
    assert check.exit_code == 2 and "0.5.20 could not be checked" in check.stderr
    assert lock("--check", "--sglang", spec).exit_code == 0


def test_nothing_can_be_had(bench: Bench, lock: Lock) -> None:
    assert lock("--sglang", clone(bench, "@0.5.20")).exit_code == 0
    result = lock()
    assert result.exit_code == 2 and "no index has sglang 0.5.20" in result.stderr


def test_what_is_stale_is_said_line_by_line(bench: Bench, lock: Lock) -> None:
    assert lock("--sglang", "0.5.19").exit_code == 0
    assert lock("--check").exit_code == 0
    bench.edit(COMMON, "tp_size, nnodes=1", "tp_size").resolver()
    bench.edit(MAP, "tp_size: $any, nnodes: 1", "tp_size: $any").catalog()
    result = lock("--check")
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert any(
        line.startswith(f"0.5.19: {PINNED}: signature (gpu_id, tp_size), ") for line in lines
    )
    assert "0.5.19: affinity: the documents say something else of it" in lines
    assert f"0.5.19: {COMMON} changed" in lines
    assert "adapt.lock is stale; try: kunlun-adapt lock" in result.stderr
    assert lock().exit_code == 0 and lock("--check").exit_code == 0


def test_lines_out_of_order_are_put_in_order(bench: Bench, lock: Lock) -> None:
    assert lock("--sglang", "0.5.19").exit_code == 0
    path = bench.root / "workspace" / "adapt.lock"
    text = path.read_text(encoding="utf-8")
    head, *lines = text.splitlines(keepends=True)
    path.write_text("".join([head, *reversed(lines)]), encoding="utf-8")
    result = lock("--check")
    assert result.exit_code == 1 and "the order of the lines" in result.stdout
    assert lock().exit_code == 0 and path.read_text(encoding="utf-8") == text


def test_only_what_is_held_can_be_dropped(bench: Bench, lock: Lock) -> None:
    assert lock("--sglang", "0.5.19").exit_code == 0
    result = lock("--drop", "0.5.17")
    assert result.exit_code == 2 and "it holds 0.5.19" in result.stderr
    assert held(bench) == ("0.5.19",)


def test_dropping_a_release_leaves_the_others_as_they_are(bench: Bench, lock: Lock) -> None:
    """Of what 0.5.20 leaves out the body is known from 0.5.19 alone."""
    bench.edit(
        MAP,
        "    why: pin each",
        '    excluded: [{sglang: ">=0.5.20", why: it is gone}]\n    why: pin each',
    ).catalog()
    renamed = bench.edit(COMMON, "def set_affinity", "def pin_worker")
    renamed.resolver()
    spec = clone(bench, "@0.5.20")
    bench.resolver()
    assert lock("--sglang", "0.5.19", "--sglang", spec).exit_code == 0
    assert held(bench) == ("0.5.19", "0.5.20")
    assert lock("--drop", "0.5.19").exit_code == 0
    check = lock("--check", "--sglang", spec)
    assert check.exit_code == 0, check.stdout
    assert lock("--sglang", "0.5.19").exit_code == 0
    check = lock("--check", "--sglang", "0.5.19", "--sglang", spec)
    assert check.exit_code == 0, check.stdout

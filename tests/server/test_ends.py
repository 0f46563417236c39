"""How a server ends, and a full disk: no zombie, no half-written report, and `status` tells."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from kunlun_adapt.cli import app
from tests.server.models import LLAMA, TinyModel
from tests.server.requests import generate
from tests.server.server import ServerFailed, running, serve_command, stop, tail

pytestmark = [pytest.mark.server, pytest.mark.torch]

FULL = Path("/dev/full")
PROMPT = list(range(5, 25))
SECONDS = 30.0


def test_a_full_disk_and_then_a_killed_worker(
    model_folder: Callable[[TinyModel], Path], tmp_path: Path
) -> None:
    folder = model_folder(LLAMA)
    with running(
        lambda port, runs: serve_command(folder, port, runs), tmp_path / "server"
    ) as server:
        answer = generate(server, PROMPT)
        worker = _settled(server.run_dir, "scheduler")
        if FULL.is_char_device():
            # What the worker writes next meets a disk that takes nothing.
            half = server.run_dir / f"{worker['pid']}.part"
            half.symlink_to(FULL)
            assert generate(server, PROMPT)["output_ids"] == answer["output_ids"]
            _until(lambda: not half.is_symlink(), "the report was not written again")
            assert "the ledger cannot be written to" in tail(server.log)
            _settled(server.run_dir, "scheduler", more_than=worker)
            worker = _settled(server.run_dir, "scheduler")
        os.kill(worker["pid"], signal.SIGKILL)
        # SGLang watches over its workers and ends the rest itself.
        server.process.wait(SECONDS)
        _until(lambda: not _members(server.process.pid), "something outlived the server")
    _nothing_half_written(server.run_dir)
    told = _status(server.run_dir)
    states = {process["process"]: process["state"] for process in told["processes"]}
    assert states["scheduler"] == "gone", told
    assert set(states.values()) <= {"ended", "gone"}, told
    assert not told["unreadable"] and not told["unseen"]


@pytest.mark.full
def test_a_server_that_is_asked_to_end(
    model_folder: Callable[[TinyModel], Path], tmp_path: Path
) -> None:
    folder = model_folder(LLAMA)
    with running(
        lambda port, runs: serve_command(folder, port, runs), tmp_path / "server"
    ) as server:
        generate(server, PROMPT)
        running_now = _status(server.run_dir)
        # The first process is SGLang's, not a wrapper of ours that would have to pass signals on.
        main = next(p for p in running_now["processes"] if p["process"] == "main")
        assert main["pid"] == server.process.pid and main["state"] == "running"
        stop(server.process)
        server.process.wait(SECONDS)
        _until(lambda: not _members(server.process.pid), "something outlived the server")
    _nothing_half_written(server.run_dir)
    told = _status(server.run_dir)
    assert {p["state"] for p in told["processes"]} <= {"ended", "gone"}, told
    assert len(told["processes"]) == len(running_now["processes"])


def _settled(
    run_dir: Path, process: str, more_than: dict[str, Any] | None = None
) -> dict[str, Any]:
    """A process's report once it has not changed for a while, so that a kill meets no writing.

    With `more_than` it has to differ from that one.
    """
    seen: dict[str, Any] = {}

    def quiet() -> bool:
        nonlocal seen
        before, seen = seen, _report(run_dir, process)
        time.sleep(1.0)
        return bool(seen) and seen == before and seen != more_than

    _until(quiet, f"the report of the {process} does not settle")
    return seen


def _report(run_dir: Path, process: str) -> dict[str, Any]:
    for path in run_dir.glob("*.json"):
        report = json.loads(path.read_text(encoding="utf-8"))
        if report["process"] == process:
            return dict(report)
    return {}


def _nothing_half_written(run_dir: Path) -> None:
    assert not list(run_dir.glob("*.part"))
    for path in run_dir.glob("*.json"):
        assert json.loads(path.read_text(encoding="utf-8"))["schema"] == 1


def _status(run_dir: Path) -> Any:
    result = CliRunner().invoke(app, ["status", str(run_dir), "--format", "json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def _members(leader: int) -> list[str]:
    """What is left of a server's session, zombies included.

    Those whose parent has ended are collected by the system, within a moment.
    """
    left = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        state, parent, session = fields[0], int(fields[1]), int(fields[3])
        if session == leader:
            left.append(f"{entry.name} ({state}, child of {parent})")
    return left


def _until(holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + SECONDS
    while not holds():
        if time.monotonic() > deadline:
            raise ServerFailed(what)
        time.sleep(0.1)

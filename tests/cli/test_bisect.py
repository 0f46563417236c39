"""`bisect` on commands that start the made-up SGLang, and fail with one of its bindings."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kunlun_adapt.cli.trials import Trials
from tests.cli.conftest import Run
from tests.runtime.stage import MAP, RECIPE, ROOT, SHOW, STARTED, Stage

Command = Callable[[str], list[str]]


@pytest.fixture
def command(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Command:
    """Put the stage on disk; return the command line that runs code on it."""
    stage = Stage(tmp_path / "stage", tmp_path_factory.getbasetemp() / "generated")
    stage.root.mkdir()
    stage.write()
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(stage.tree), str(ROOT)]))
    monkeypatch.setenv("KUNLUN_ADAPT_WORKSPACE", str(stage.root / "workspace"))
    monkeypatch.setenv("KUNLUN_ADAPT_CACHE", str(stage.cache))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    for name in ("KUNLUN_ADAPT_DISABLE", "KUNLUN_ADAPT_RUN_DIR", "KUNLUN_ADAPT_SIMULATOR"):
        monkeypatch.delenv(name, raising=False)

    def started(code: str) -> list[str]:
        # `run` sets the environment anew; the workspace stays.
        monkeypatch.setenv("KUNLUN_ADAPT_WORKSPACE", str(stage.root / "workspace"))
        return [sys.executable, "-c", STARTED + SHOW + code]

    return started


def test_the_binding_is_found_with_its_place(run: Run, command: Command, tmp_path: Path) -> None:
    fails = command("raise SystemExit('tiny' in common.CHOICES)")
    result = run("bisect", "--format", "json", "--logs", tmp_path / "logs", "--", *fails)
    assert result.exit_code == 0, result.output
    body = json.loads(result.stdout)
    at = f"{tmp_path}/stage/workspace/{MAP}:26:19"
    assert body["found"] == [{"id": "choices", "at": at}]
    runs = body["runs"]
    assert [r["outcome"] for r in runs[:2]] == ["fails", "passes"]
    assert runs[0]["off"] == [] and set(runs[1]["off"]) == {"choices", "silu/silu", "silu/Silu"}
    assert "{'factory/device.name'" in Path(runs[0]["log"]).read_text()
    assert {r["number"] for r in runs} == set(range(1, len(runs) + 1))


def test_bindings_that_only_fail_together_need_one_off(run: Run, command: Command) -> None:
    code = "raise SystemExit('tiny' in common.CHOICES and layers.silu is not None and "
    fails = command(code + "'bind_' in layers.silu.__name__)")
    result = run("bisect", "--", *fails)
    assert result.exit_code == 0, result.output
    first, *_, last = result.stdout.splitlines()
    assert first.startswith(("choices  (", "silu/silu  ("))
    assert "KUNLUN_ADAPT_DISABLE=" in last
    assert "run 1, everything on: fails" in result.stderr


def test_two_culprits_are_both_named(run: Run, command: Command) -> None:
    fails = command("raise SystemExit('tiny' in common.CHOICES or layers.silu.__name__ != 'silu')")
    body = json.loads(run("bisect", "--format", "json", "-q", "--", *fails).stdout)
    assert [f["id"] for f in body["found"]] == ["choices", "silu/silu"]
    assert body["found"][1]["at"].partition(":")[0].endswith(RECIPE)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("", "none found: COMMAND passes as it is (1 run(s))"),
        ("raise SystemExit(3)", "COMMAND fails with all 3 bindings switched off as well"),
    ],
)
def test_none_is_found(run: Run, command: Command, code: str, said: str) -> None:
    result = run("bisect", "-q", "--", *command(code))
    assert result.exit_code == 1 and said in result.stdout and not result.stderr


def test_a_command_that_never_starts_sglang_cannot_be_bisected(run: Run, command: Command) -> None:
    command("")
    result = run("bisect", "-q", "--", sys.executable, "-c", "raise SystemExit(1)")
    assert result.exit_code == 2 and "no process of it kept a ledger" in result.stderr


def test_a_command_that_drops_its_environment_cannot_be_bisected(
    run: Run, command: Command
) -> None:
    drops = "import os, sys; os.environ.pop('KUNLUN_ADAPT_DISABLE', None);"
    fails = command("raise SystemExit(1)")
    result = run("bisect", "-q", "--", *fails[:2], drops + fails[2])
    assert result.exit_code == 2 and "is in effect in the main process" in result.stderr


@pytest.mark.parametrize("arguments", [(), ("--",), ("python", "x.py")])
def test_without_a_command_there_is_nothing_to_do(run: Run, arguments: tuple[str, ...]) -> None:
    result = run("bisect", *arguments)
    assert result.exit_code == 2 and not result.stdout


def test_a_command_that_is_not_there(run: Run, tmp_path: Path) -> None:
    result = run("bisect", "-q", "--logs", tmp_path / "l", "--", "/no/such/command")
    assert result.exit_code == 2 and "/no/such/command" in result.stderr
    result = run("bisect", "--logs", tmp_path / "l", "--", "true")
    assert result.exit_code == 2 and "is not empty" in result.stderr


def test_a_hang_counts_as_a_failure_and_leaves_no_process(
    run: Run, command: Command, tmp_path: Path
) -> None:
    child = (
        "import subprocess, time\n"
        f"child = subprocess.Popen(['sleep', '300'])\n"
        f"open({str(tmp_path / 'pid')!r}, 'w').write(str(child.pid))\n"
    )
    hangs = command(child + "if 'tiny' in common.CHOICES: time.sleep(300)")
    found = run("bisect", "--timeout", "12", "--format", "json", "-q", "--", *hangs)
    body: Any = json.loads(found.stdout)
    assert [f["id"] for f in body["found"]] == ["choices"]
    assert body["runs"][0]["outcome"] == "times out" and body["runs"][0]["code"] is None
    assert_gone(int((tmp_path / "pid").read_text()))


def assert_gone(pid: int) -> None:
    for _ in range(100):
        try:
            if ") Z " in Path(f"/proc/{pid}/stat").read_text():
                return
        except OSError:
            return
        time.sleep(0.1)
    raise AssertionError("a process of the command is left")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_bisection_that_is_ended_leaves_no_process(tmp_path: Path, number: int) -> None:
    # The command does not end when it is asked to, and neither does what it started.
    stubborn = "trap '' TERM; sleep 300 & echo $! $$ > pids.new; mv pids.new pids; wait; sleep 300"
    command = [sys.executable, "-m", "kunlun_adapt", "bisect", "-q", "--logs", "logs"]
    # Tests that run in the background, or under nohup, hand down that these are ignored.
    kept = signal.signal(number, signal.SIG_DFL)
    try:
        bisection = subprocess.Popen(
            [*command, "--", "sh", "-c", stubborn],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stderr=subprocess.PIPE,
        )
    finally:
        signal.signal(number, kept)
    try:
        # Patient: on a busy machine Python takes its time to begin.
        for _ in range(1800):
            if (tmp_path / "pids").exists() or bisection.poll() is not None:
                break
            time.sleep(0.1)
        bisection.send_signal(number)
        _, said = bisection.communicate(timeout=180)
    finally:
        bisection.kill()
    # Whoever sent the signal sees that it took effect; an interruption has always had words.
    assert bisection.returncode == (2 if number == signal.SIGINT else -number), said
    for pid in (tmp_path / "pids").read_text().split():
        assert_gone(int(pid))


def test_a_hangup_that_is_ignored_stays_ignored(tmp_path: Path) -> None:
    kept = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        hangs_up = f"kill -HUP {os.getpid()}; sleep 0.2"
        trial = Trials(["sh", "-c", hangs_up], tmp_path).run(())
    finally:
        signal.signal(signal.SIGHUP, kept)
    assert trial.outcome == "passes"


def test_what_is_not_ours_must_follow_the_dashes(run: Run) -> None:
    result = run("bisect", "python", "check.py")
    assert result.exit_code == 2 and "COMMAND comes after --." in result.stderr


def test_what_the_user_switched_off_stays_off(
    run: Run, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUNLUN_ADAPT_DISABLE", "silu/Silu")
    fails = command("raise SystemExit(layers.silu.__name__ != 'silu')")
    body = json.loads(run("bisect", "-q", "--format", "json", "--", *fails).stdout)
    assert [f["id"] for f in body["found"]] == ["silu/silu"]
    assert all("silu/Silu" not in r["off"] for r in body["runs"])


def test_the_simulator_is_set_up_for_the_command(
    run: Run, command: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    command("")
    monkeypatch.setattr("kunlun_adapt.simulator.standin_paths", lambda: ["/stand-ins/triton"])
    shows = 'echo "$KUNLUN_ADAPT_SIMULATOR $KUNLUN_ADAPT_SIMULATOR_DEVICE $PYTHONPATH"'
    before = os.environ["PYTHONPATH"]
    options = ("--simulator", "--logs", tmp_path / "logs")
    result = run("bisect", *options, "--", "sh", "-c", shows)
    assert result.exit_code == 1 and "COMMAND passes as it is" in result.stdout
    assert "SIMULATOR: no Kunlun card is used" in result.stderr
    said = (tmp_path / "logs" / "1.log").read_text()
    assert said == f"1 cpu /stand-ins/triton:{before}\n"


def test_beside_a_card_the_simulator_is_refused(
    run: Run, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    command("")
    monkeypatch.setattr("kunlun_adapt.cli.simulated.is_installed", lambda module: True)
    result = run("bisect", "--simulator", "--", "true")
    assert result.exit_code == 2 and "both a card and the simulator" in result.stderr

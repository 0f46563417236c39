"""`serve` up to the point where the process becomes SGLang's."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import Any

import pytest

from kunlun_adapt.runtime import probe
from tests.cli.conftest import Run

Started = list[tuple[list[str], dict[str, str]]]


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Started:
    """What the process would become; SGLang counts as installed, and there is no card."""
    calls: Started = []
    find = importlib.util.find_spec

    def found(name: str, package: str | None = None) -> Any:
        if name in ("sglang", "torch_xmlir"):
            return find("json") if name == "sglang" else None
        return find(name, package)

    def become(path: str, command: list[str], environment: dict[str, str]) -> None:
        calls.append((command, environment))

    monkeypatch.setattr("importlib.util.find_spec", found)
    monkeypatch.setattr(os, "execve", become)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    for name in (probe.SIMULATOR, "KUNLUN_ADAPT_RUN_DIR"):
        monkeypatch.delenv(name, raising=False)
    return calls


@pytest.mark.parametrize(
    "arguments",
    [
        ("--simulater", "--", "--model-path", "m"),
        ("--simulator", "stray", "--", "--model-path", "m"),
        ("--simulator", "--model-path", "m"),
        ("--tp", "4"),
    ],
)
def test_what_is_not_ours_must_follow_the_dashes(
    run: Run, started: Started, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    result = run("serve", *arguments)
    assert result.exit_code == 2 and "-- SGLANG-ARGUMENTS" in result.stderr
    assert started == [] and list(tmp_path.iterdir()) == []


def test_what_follows_the_dashes_is_handed_on_as_it_is(
    run: Run, started: Started, tmp_path: Path
) -> None:
    passed = ["--model-path", "m", "--simulator", "--", "-h", "stray"]
    result = run("serve", "--simulator", "--", *passed)
    assert result.exit_code == 0, result.stderr
    ((command, environment),) = started
    assert command[1:] == ["-m", "sglang.launch_server", *passed]
    assert environment[probe.SIMULATOR] == "1"
    assert Path(environment["KUNLUN_ADAPT_RUN_DIR"]).parent == tmp_path
    assert "SIMULATOR: no Kunlun card is used" in result.stderr


def test_without_a_card_the_simulator_has_to_be_asked_for(
    run: Run, started: Started, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = run("serve", "--", "--model-path", "m")
    assert result.exit_code == 2
    assert "no card here (torch_xmlir is not installed)" in result.stderr
    assert "use --simulator" in result.stderr
    assert started == [] and list(tmp_path.iterdir()) == [], "no run folder is left behind"
    monkeypatch.setenv(probe.SIMULATOR, "1")
    assert run("serve", "--", "--model-path", "m").exit_code == 0
    assert "SIMULATOR" in run("serve", "--").stderr


@pytest.mark.parametrize("value", ["true", "yes", "2", " 1"])
def test_an_unclear_wish_for_the_simulator_is_refused(
    run: Run,
    started: Started,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    value: str,
) -> None:
    monkeypatch.setenv(probe.SIMULATOR, value)
    result = run("serve", "--simulator", "--")
    assert result.exit_code == 2 and f"{probe.SIMULATOR}=1 asks for" in result.stderr
    assert started == []
    with pytest.raises(SystemExit) as stopped:
        probe.profile()
    assert stopped.value.code == 1
    assert f"{probe.SIMULATOR}={value!r}" in capsys.readouterr().err


@pytest.mark.parametrize(("value", "profile"), [("", None), ("0", None), ("1", "simulator")])
def test_a_clear_wish_for_the_simulator(
    started: Started, monkeypatch: pytest.MonkeyPatch, value: str, profile: str | None
) -> None:
    monkeypatch.setenv(probe.SIMULATOR, value)
    assert probe.profile() == profile

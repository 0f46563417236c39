"""Pipes whose reader has gone and closed streams: each command in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.check.bench import MAP, Bench
from tests.cli.conftest import ROOT

WRONG = "validate --workspace {0}/workspace --sglang {0}/release"
COMMANDS = {
    "list codes": 0,
    "explain KA105": 0,
    "schema PlatformMap": 0,
    f"{WRONG} --format github": 1,
    f"{WRONG} --format json": 1,
    f"{WRONG} --fail-on never": 0,
    "list nonsense": 2,
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bench")
    Bench(folder).edit(MAP, "common.CHOICES", "common.CHOICE").report()  # writes both
    return folder


def end(
    command: str, place: Path, *, shell: str, broken: bool = False, colours: bool = False
) -> subprocess.CompletedProcess[str]:
    """Run a command as `shell` has it; with `broken`, nobody reads what it prints on stdout."""
    program = f'exec "$0" -m kunlun_adapt {command.format(place)} {shell}'
    reader, writer = os.pipe()
    os.close(reader)
    try:
        return subprocess.run(
            ["sh", "-c", program, sys.executable],
            cwd=ROOT,
            env={**os.environ, **({"FORCE_COLOR": "1"} if colours else {})},
            stdout=writer if broken else subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    finally:
        os.close(writer)


@pytest.mark.parametrize("shell", ["", "2>&1"])
@pytest.mark.parametrize(("command", "code"), COMMANDS.items())
def test_a_reader_that_has_gone_changes_no_exit_code(
    command: str, code: int, shell: str, place: Path
) -> None:
    ended = end(command, place, shell=shell, broken=True)
    assert ended.returncode == code
    assert "rror: " not in ended.stderr and "Traceback" not in ended.stderr


def test_a_reader_that_has_gone_from_colours(place: Path) -> None:
    assert end(WRONG, place, shell="", broken=True, colours=True).returncode == 1


@pytest.mark.parametrize("colours", [False, True])
def test_a_result_is_not_lost_without_a_word(place: Path, colours: bool) -> None:
    ended = end(f"{WRONG} --format json", place, shell=">&-", colours=colours)
    assert ended.returncode == 2
    assert "stdout is closed\n  try: send what is not wanted to /dev/null\n" in ended.stderr


def test_what_prints_nothing_needs_no_stdout(place: Path) -> None:
    ended = end(f"{WRONG} --format json --output {{0}}/out.json", place, shell=">&-")
    assert ended.returncode == 1
    assert (place / "out.json").read_text(encoding="utf-8").startswith('{\n  "schema": 1')


def test_remarks_stay_out_of_the_result_without_a_stderr(place: Path) -> None:
    command = f"{WRONG} --format json --output {{0}}/quiet.json"
    assert end(command, place, shell="2>&-").stdout == ""


BECOMES = """
import sys
from pathlib import Path
from kunlun_adapt import cli
from kunlun_adapt.cli import serve
from kunlun_adapt.runtime.prepare import Installed
serve.installed_sglang = lambda: Installed("0.5.19", Path("nowhere"))
serve._launcher = lambda installed: ["-c", "print('SGLang')"]
cli.main()
"""


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_what_serve_says_is_not_lost_when_it_becomes_sglang(
    tmp_path: Path, unbuffered: str
) -> None:
    ours = ("KUNLUN_ADAPT_", "SGLANG_", "OMP_")
    done = subprocess.run(
        [sys.executable, "-c", BECOMES, "serve", "--simulator", "--no-validate"],
        cwd=ROOT,
        env={
            **{k: v for k, v in os.environ.items() if not k.startswith(ours)},
            "PYTHONUNBUFFERED": unbuffered,
            "KUNLUN_ADAPT_WORKSPACE": str(ROOT),
            "KUNLUN_ADAPT_RUN_DIR": str(tmp_path / "run"),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "SGLang\n"), done.stderr
    for said in ("workspace: ", "sets OMP_NUM_THREADS=1", "SIMULATOR: no ", "ledger in "):
        assert said in done.stderr

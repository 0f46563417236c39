"""`serve` up to the point where the process becomes SGLang's."""

from __future__ import annotations

import importlib.util
import os
import shlex
import subprocess
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kunlun_adapt.diagnostics import Finding, Position, ReleaseReport, Severity
from kunlun_adapt.runtime import probe
from kunlun_adapt.runtime.prepare import Installed
from tests.cli.conftest import ROOT, Edit, Run
from tests.cli.test_status import write

Started = list[tuple[list[str], dict[str, str]]]
RUN_DIR = "KUNLUN_ADAPT_RUN_DIR"
UNVERIFIED = "KUNLUN_ADAPT_UNVERIFIED"
CHOICE = ("SGLANG_PLATFORM", "SGLANG_PLUGINS")


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An SGLang of which only the launchers can be seen, and an environment of its own."""
    package = tmp_path / "tree" / "sglang"
    (package / "cli").mkdir(parents=True)
    for name in ("__init__.py", "launch_server.py", "cli/serve.py"):
        (package / name).touch()
    scripts = tmp_path / "scripts"
    scripts.mkdir()
    (scripts / "sglang").touch()
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(scripts))
    monkeypatch.setattr(
        "kunlun_adapt.cli.serve.installed_sglang", lambda: Installed("0.5.19", package.parent)
    )
    return package


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where run folders are made."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


@pytest.fixture
def started(tree: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch) -> Started:
    """What the process would become; there is no card, and nobody has set anything."""
    calls: Started = []
    find = importlib.util.find_spec

    def found(name: str, package: str | None = None) -> Any:
        return None if name == "torch_xmlir" else find(name, package)

    def become(path: str, command: list[str], environment: dict[str, str]) -> None:
        calls.append((command, environment))

    monkeypatch.setattr("importlib.util.find_spec", found)
    monkeypatch.setattr(os, "execve", become)
    for name in (probe.SIMULATOR, RUN_DIR, UNVERIFIED, *CHOICE, "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    return calls


@pytest.fixture
def start(run: Run) -> Run:
    """`serve` of the shipped documents without the checks, which know nothing of the tree."""
    return lambda *arguments: run(
        "serve", "--workspace", str(ROOT), "--no-validate", "--simulator", *arguments
    )


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[dict[str, Any]]]:
    """Let the checks find what is given, and return what they were asked."""

    def find(*severities: Severity) -> list[dict[str, Any]]:
        asked: list[dict[str, Any]] = []
        findings = tuple(
            Finding("KA101", s, f"a made-up {s.value}", Position("platform_map.yaml", 7, 1))
            for s in severities
        )

        def check(*arguments: Any, **keywords: Any) -> ReleaseReport:
            asked.append(keywords)
            return ReleaseReport("0.5.19", 3, 2, 1, findings)

        monkeypatch.setattr("kunlun_adapt.check.check_release", check)
        return asked

    return find


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
    run: Run, started: Started, temporary: Path, arguments: tuple[str, ...]
) -> None:
    result = run("serve", *arguments)
    assert result.exit_code == 2 and "-- SGLANG-ARGUMENTS" in result.stderr
    assert "SGLang's arguments come after --." in unboxed(result.stderr)
    assert started == [] and list(temporary.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--device", "xpu"), "Invalid value for '--device': 'xpu' is not one of 'cpu', 'cuda'"),
        (("--run-dir",), "--run-dir"),
    ],
)
def test_what_is_wrong_with_an_option_of_ours_is_about_it_alone(
    run: Run, started: Started, arguments: tuple[str, ...], said: str
) -> None:
    result = run("serve", "--simulator", *arguments)
    assert result.exit_code == 2 and started == []
    text = unboxed(result.stderr)
    assert said in text and "Value error" not in text and "come after" not in text


def unboxed(text: str) -> str:
    """What a frame around it has broken into lines."""
    return " ".join(text.replace("│", " ").split())


def test_what_follows_the_dashes_is_handed_on_as_it_is(
    start: Run, started: Started, temporary: Path, tmp_path: Path
) -> None:
    passed = ["--model-path", "m", "--simulator", "--", "-h", "stray"]
    result = start("--", *passed)
    assert result.exit_code == 0, result.stderr
    ((command, environment),) = started
    assert command[1:] == [str(tmp_path / "scripts" / "sglang"), "serve", *passed]
    assert environment[probe.SIMULATOR] == "1"
    assert environment["SGLANG_PLATFORM"] == "kunlun"
    assert environment["KUNLUN_ADAPT_WORKSPACE"] == str(ROOT)
    assert Path(environment[RUN_DIR]).parent == temporary
    assert "SIMULATOR: no Kunlun card is used" in result.stderr


@pytest.mark.parametrize("lacking", ["tree/sglang/cli/serve.py", "scripts/sglang"])
def test_a_release_without_the_command_has_the_module(
    start: Run, started: Started, tmp_path: Path, lacking: str
) -> None:
    (tmp_path / lacking).unlink()
    assert start("--", "--tp", "2").exit_code == 0
    ((command, _),) = started
    assert command[1:] == ["-m", "sglang.launch_server", "--tp", "2"]


def test_a_release_without_any_launcher_cannot_be_started(
    start: Run, started: Started, tree: Path
) -> None:
    for name in ("launch_server.py", "cli/serve.py"):
        (tree / name).unlink()
    result = start("--")
    assert result.exit_code == 2 and started == []
    assert "neither `sglang serve` nor sglang.launch_server" in result.stderr


def test_without_a_card_the_simulator_has_to_be_asked_for(
    run: Run, started: Started, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = run("serve", "--", "--model-path", "m")
    assert result.exit_code == 2
    assert "no card here (torch_xmlir is not installed)" in result.stderr
    assert "use --simulator" in result.stderr
    assert started == [] and list(temporary.iterdir()) == [], "no run folder is left behind"
    monkeypatch.setenv(probe.SIMULATOR, "1")
    result = run("serve", "--no-validate", "--", "--model-path", "m")
    assert result.exit_code == 0 and "SIMULATOR" in result.stderr


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


def test_defaults_of_the_map_are_set_and_said(start: Run, started: Started) -> None:
    result = start("--")
    ((_, environment),) = started
    assert environment["OMP_NUM_THREADS"] == "1"
    assert "sets OMP_NUM_THREADS=1: more threads slow" in result.stderr
    # Those of the card are not this profile's.
    assert "XMLIR_FORCE_USE_XPU_GRAPH" not in environment
    assert "XMLIR_FORCE_USE_XPU_GRAPH" not in result.stderr


@pytest.mark.parametrize(
    ("own", "said"), [("4", "keeps OMP_NUM_THREADS=4 as it is set, in place of 1"), ("1", "")]
)
def test_what_the_user_has_set_stays(
    start: Run, started: Started, monkeypatch: pytest.MonkeyPatch, own: str, said: str
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", own)
    result = start("--")
    ((_, environment),) = started
    assert environment["OMP_NUM_THREADS"] == own
    assert said in result.stderr and "sets OMP_NUM_THREADS" not in result.stderr


def test_another_platform_than_ours_is_refused(
    start: Run, started: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SGLANG_PLATFORM", "other")
    result = start("--")
    assert result.exit_code == 2 and started == []
    assert "SGLANG_PLATFORM=other chooses another platform than kunlun" in result.stderr
    assert "unset SGLANG_PLATFORM" in result.stderr


def test_a_plugin_list_without_our_hooks_is_refused(
    start: Run, started: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SGLANG_PLUGINS", "other")
    result = start("--")
    assert result.exit_code == 2 and started == []
    assert "SGLANG_PLUGINS=other leaves out kunlun_hooks" in result.stderr


def test_errors_of_the_checks_end_the_start_with_the_findings(
    run: Run,
    started: Started,
    temporary: Path,
    checked: Callable[..., list[dict[str, Any]]],
) -> None:
    asked = checked(Severity.ERROR, Severity.WARNING)
    result = run("serve", "--simulator", "--workspace", str(ROOT), "--")
    assert result.exit_code == 1 and result.stdout == ""
    assert "platform_map.yaml:7:1: error KA101" in result.stderr
    assert "1 error; the start is refused" in result.stderr and "--no-validate" in result.stderr
    assert started == [] and list(temporary.iterdir()) == []
    assert asked[0]["workspace"] == str(ROOT) and asked[0]["lock"].releases


def test_warnings_are_shown_and_the_server_starts(
    run: Run, started: Started, checked: Callable[..., list[dict[str, Any]]]
) -> None:
    checked(Severity.WARNING, Severity.INFO)
    result = run("serve", "--simulator", "--")
    assert result.exit_code == 0 and len(started) == 1
    assert "warning KA101" in result.stderr and "made-up info" not in result.stderr
    begins = result.stderr.index("checking sglang 0.5.19 … (some tens of seconds where the tree")
    assert begins < result.stderr.index("warning KA101")
    assert "refused" not in result.stderr


def test_a_release_that_is_only_tried_starts_with_its_errors_shown(
    run: Run,
    started: Started,
    monkeypatch: pytest.MonkeyPatch,
    checked: Callable[..., list[dict[str, Any]]],
) -> None:
    asked = checked(Severity.ERROR)
    monkeypatch.setenv(UNVERIFIED, "1")
    result = run("serve", "--simulator", "--")
    assert result.exit_code == 0 and len(started) == 1
    assert asked[0]["beyond_claims"] is True
    assert "error KA101" in result.stderr
    assert f"trying it all the same, since {UNVERIFIED}=1" in result.stderr


def test_without_the_checks_faulty_documents_are_left_to_the_processes(
    run: Run, started: Started, edit: Edit
) -> None:
    faulty = edit({"\nhooks:\n": "\nunknown: 1\nhooks:\n"})
    arguments = ("serve", "--simulator", "--workspace", str(faulty))
    assert run(*arguments, "--no-validate", "--").exit_code == 0 and len(started) == 1
    result = run(*arguments, "--")
    assert result.exit_code == 1 and len(started) == 1
    assert "KA003" in result.stderr


@pytest.mark.parametrize("given", ["", " "])
def test_an_empty_run_folder_is_refused(
    start: Run, started: Started, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, given: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "1.json").write_text("of the user")
    result = start("--run-dir", given, "--")
    assert result.exit_code == 2 and started == []
    assert "leave --run-dir out" in result.stderr
    assert (tmp_path / "1.json").read_text() == "of the user"


def test_a_folder_with_files_of_the_user_is_refused_and_left_alone(
    start: Run, started: Started, tmp_path: Path
) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "1.json").write_text('{"rows": []}')
    (folder / "2.part").write_text("of a download")
    result = start("--run-dir", str(folder), "--")
    assert result.exit_code == 2 and started == []
    assert f"{folder}/1.json has the name of a ledger" in result.stderr
    assert "--run-dir runs/1" in result.stderr
    assert sorted(p.name for p in folder.iterdir()) == ["1.json", "2.part"]


@pytest.mark.parametrize("given", ["{0}/file", "{0}/file/below", "{0}/dangling", "/proc/nowhere"])
@pytest.mark.parametrize("what", ["--print-env", "--"])
def test_a_folder_that_can_hold_no_ledger_is_refused(
    start: Run, started: Started, tmp_path: Path, given: str, what: str
) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "dangling").symlink_to("nowhere")
    folder = given.format(tmp_path)
    result = start("--run-dir", folder, what)
    assert result.exit_code == 2 and started == [] and "ledger in" not in result.stderr
    assert f"no ledger can be kept in {folder}: " in result.stderr
    assert "try: name a folder that can be written to with --run-dir" in result.stderr


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_is_for_reading_only_is_refused(
    start: Run, started: Started, tmp_path: Path
) -> None:
    folder = tmp_path / "only"
    folder.mkdir(mode=0o555)
    result = start("--run-dir", str(folder), "--")
    assert result.exit_code == 2 and started == [] and "Permission denied" in result.stderr


def test_the_ledgers_of_an_earlier_run_stay(start: Run, started: Started, tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    earlier = write(folder, "main", 2**22 + 17)
    other = folder / "3.part"
    other.write_text("half")
    result = start("--run-dir", str(folder), "--")
    assert result.exit_code == 0, result.stderr
    ((_, environment),) = started
    assert environment[RUN_DIR] == str(folder) and "KUNLUN_ADAPT_RUN" not in environment
    assert earlier.exists() and other.exists()


def test_a_run_folder_is_made(start: Run, started: Started, tmp_path: Path) -> None:
    assert start("--run-dir", str(tmp_path / "a" / "b"), "--").exit_code == 0
    ((_, environment),) = started
    assert environment[RUN_DIR] == str(tmp_path / "a" / "b") and (tmp_path / "a" / "b").is_dir()


def evaluated(exports: str, *names: str) -> list[str]:
    """What a shell makes of the exports: the values of some variables."""
    script = exports + "".join(f'printf "%s\\n" "${name}"; ' for name in names)
    done = subprocess.run(["sh", "-eu", "-c", script], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_what_would_be_set_can_be_had_for_any_command(
    start: Run,
    started: Started,
    temporary: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PYTHONPATH", "/a b:/it's")
    monkeypatch.setattr("kunlun_adapt.simulator.standin_paths", lambda: ["/stand in/triton"])
    result = start("--print-env", "--device", "cuda", "--run-dir", str(tmp_path / "a run"))
    assert result.exit_code == 0, result.stderr
    assert started == [] and list(temporary.iterdir()) == [] and not (tmp_path / "a run").exists()
    names = (probe.SIMULATOR, probe.DEVICE, "PYTHONPATH", RUN_DIR, "OMP_NUM_THREADS")
    assert evaluated(result.stdout, *names) == [
        "1",
        "cuda",
        "/stand in/triton:/a b:/it's",
        str(tmp_path / "a run"),
        "1",
    ]
    assert evaluated(result.stdout, "SGLANG_PLATFORM", "KUNLUN_ADAPT_WORKSPACE") == [
        "kunlun",
        str(ROOT),
    ]
    # What is there already is not put there again.
    monkeypatch.setenv("PYTHONPATH", "/stand in/triton:/b")
    assert evaluated(start("--print-env").stdout, "PYTHONPATH") == ["/stand in/triton:/b"]


def test_what_would_be_set_is_what_the_server_gets(start: Run, started: Started) -> None:
    printed = start("--print-env").stdout.splitlines()
    assert start("--").exit_code == 0
    ((_, environment),) = started
    for line in printed:
        name, _, value = line.removeprefix("export ").partition("=")
        assert environment[name] == shlex.split(value)[0]
    set_by_serve = {n for n, v in environment.items() if os.environ.get(n) != v}
    assert set_by_serve == {line.split()[1].partition("=")[0] for line in printed} | {RUN_DIR}


def test_printing_starts_nothing_and_takes_no_arguments_of_sglang(
    start: Run, started: Started
) -> None:
    result = start("--print-env", "--", "--tp", "2")
    assert result.exit_code == 2 and result.stdout == "" and started == []
    assert "leave out what follows --" in result.stderr

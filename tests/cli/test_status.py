"""`status` on the ledgers of made-up runs: whole, torn, dead, refused and mixed."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kunlun_adapt.runtime import ledger, processes
from tests.cli.conftest import ROOT, Run

GONE = 2**22 + 17
"""More than the system gives to a process."""


def binding(id: str, state: str = "applied", **more: Any) -> dict[str, Any]:
    return {
        "id": id,
        "state": state,
        "required": True,
        "detail": "",
        "kept": "",
        "member": "",
        **more,
    }


def write(folder: Path, process: str = "main", pid: int | None = None, **more: Any) -> Path:
    """Write a ledger as a process would; of this one where no number is given."""
    body = {
        **ledger.snapshot(),
        "process": process,
        "run": "one",
        "release": "1.2.0",
        "profile": "card",
        "bindings": [binding("a"), binding("b")],
        **({"pid": pid, "born": 1} if pid else {}),
        **more,
    }
    folder.mkdir(exist_ok=True)
    path = folder / f"{body['pid']}.json"
    path.write_text(json.dumps(body), encoding="utf-8")
    return path


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(ledger, "LEDGER", ledger.Ledger(map="tiny", map_revision="abc"))
    monkeypatch.setattr(ledger, "_settlers", [])
    monkeypatch.setattr(ledger, "_file", ledger._File())
    monkeypatch.delenv(ledger.RUN_DIR, raising=False)
    return tmp_path / "run"


def said(run: Run, folder: Path, *options: str) -> Any:
    result = run("status", folder, "--format", "json", *options)
    assert result.exit_code in (0, 1), result.output
    return {**json.loads(result.stdout), "code": result.exit_code}


def test_a_sound_run(run: Run, folder: Path) -> None:
    write(folder)
    body = said(run, folder)
    assert (body["schema"], body["ok"], body["code"]) == (1, True, 0)
    (process,) = body["processes"]
    assert (process["process"], process["state"]) == ("main", "running")
    assert process["counts"] == {
        "applied": 2,
        "pending": 0,
        "failed": 0,
        "missing": 0,
        "disabled": 0,
        "elsewhere": 0,
    }
    assert body["lacks"] == [] and body["nowhere"] == [] and body["counted"] == ledger.COUNTED
    text = run("status", folder).stdout
    assert "sglang 1.2.0, map tiny abc, profile card" in text
    assert "1 process(es), 1 running: nothing required is missing" in text


def test_ranks_tell_one_worker_from_another(run: Run, folder: Path) -> None:
    write(folder, "scheduler", ranks={"PP": 0, "TP": 1})
    (process,) = said(run, folder)["processes"]
    assert (process["process"], process["ranks"]) == ("scheduler", {"PP": 0, "TP": 1})
    assert "scheduler PP0 TP1" in run("status", folder).stdout


def test_which_process_lacks_what(run: Run, folder: Path) -> None:
    write(folder, bindings=[binding("a"), binding("b"), binding("c", "elsewhere", detail="x")])
    write(
        folder,
        "detokenizer",
        GONE,
        parent=os.getpid(),
        bindings=[binding("a", "pending"), binding("d", "pending", detail="not yet")],
    )
    body = said(run, folder)
    assert (body["code"], body["ok"]) == (1, False), "b is required, and missing in one process"
    lacks = [(x["binding"], x["process"], x["state"]) for x in body["lacks"]]
    assert lacks == [("a", "detokenizer", "pending"), ("b", "detokenizer", "missing")]
    assert body["nowhere"] == [
        {"binding": "c", "why": "x"},
        {"binding": "d", "why": "not yet"},
    ]
    states = {b["id"]: b["states"] for b in body["bindings"]}
    assert states["b"] == {str(os.getpid()): "applied", str(GONE): "missing"}
    text = run("status", folder).stdout
    assert f"detokenizer {GONE}: missing (this process never took it up), though applied" in text
    assert "something is wrong, see above" in text.splitlines()[-1]


def test_what_a_process_misses_is_wrong_where_it_is_required(run: Run, folder: Path) -> None:
    missing = binding("b", "missing", detail="nobody registered it")
    write(folder, bindings=[binding("a"), {**missing, "required": False}])
    assert said(run, folder)["code"] == 0
    text = run("status", folder).stdout
    assert "lacking" not in text and "no fault: 1 missing and not required; --verbose" in text
    write(folder, bindings=[binding("a"), missing])
    body = said(run, folder)
    assert (body["code"], body["nowhere"]) == (1, []), "nor is it told twice"
    assert body["processes"][0]["counts"]["missing"] == 1
    text = run("status", folder).stdout
    assert f"main {os.getpid()}: missing (nobody registered it):\n" in text
    assert "something is wrong, see above" in text.splitlines()[-1]


def test_what_is_not_due_yet_in_one_process_is_no_fault(run: Run, folder: Path) -> None:
    write(folder)
    write(
        folder,
        "scheduler",
        GONE,
        parent=os.getpid(),
        bindings=[binding("a"), binding("b", "pending")],
    )
    body = said(run, folder)
    assert (body["code"], [x["state"] for x in body["lacks"]]) == (0, ["pending"])
    text = run("status", folder).stdout
    assert "lacking" not in text and "though applied" not in text
    assert "no fault: 1 not due yet in one process though taken up in another; --verbose" in text
    whole = run("status", folder, "--verbose").stdout
    assert f"lacking:\n  scheduler {GONE}: pending, though applied or failed in another:\n" in whole
    assert "no fault" not in whole


def test_a_required_failure_is_exit_code_one_and_an_optional_one_is_not(
    run: Run, folder: Path
) -> None:
    failed = binding("b", "failed", detail="why\nand how")
    write(folder, bindings=[binding("a"), {**failed, "required": False}])
    assert said(run, folder)["code"] == 0
    assert "b failed (not required)" in run("status", folder).stdout
    write(folder, bindings=[binding("a"), failed])
    assert said(run, folder)["code"] == 1
    result = run("status", folder)
    assert result.exit_code == 1 and "something is wrong" in result.stdout
    assert f"main {os.getpid()}: b failed\n" in result.stdout and "      and how" in result.stdout


def test_what_the_user_switched_off_is_named_and_no_fault(run: Run, folder: Path) -> None:
    write(folder, bindings=[binding("a", "disabled")])
    body = said(run, folder)
    assert (body["code"], body["disabled"], body["lacks"]) == (0, ["a"], [])
    assert "switched off by the user:\n  a" in run("status", folder).stdout


def test_a_refused_process_is_shown_with_its_table(run: Run, folder: Path) -> None:
    write(folder, refused="kunlun-adapt: no; the start is refused.\n  b")
    result = run("status", folder)
    assert result.exit_code == 1
    assert "refused" in result.stdout and "the start is refused." in result.stdout
    assert said(run, folder)["ok"] is False


def test_dead_processes_are_marked(run: Run, folder: Path) -> None:
    write(folder)
    write(folder, "scheduler", GONE, parent=os.getpid())
    write(folder, "detokenizer", GONE + 1, parent=os.getpid(), ended=True)
    write(folder, "other", GONE + 2, parent=os.getpid(), host="another machine")
    closing = run("status", folder).stdout.splitlines()[-1]
    assert "1 gone" in closing and "while others run" in closing
    states = {p["process"]: p["state"] for p in said(run, folder)["processes"]}
    assert states == {
        "main": "running",
        "scheduler": "gone",
        "detokenizer": "ended",
        "other": "unknown",
    }


def test_a_later_process_with_the_same_number_is_not_taken_for_it(run: Run, folder: Path) -> None:
    write(folder, born=1)
    assert said(run, folder)["processes"][0]["state"] == "gone"


def test_a_zombie_is_told_from_a_running_process(run: Run, folder: Path) -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    try:
        seen = processes.look(child.pid)
        assert seen is not None
        write(folder, "scheduler", child.pid, born=seen.born, parent=os.getpid())
        assert said(run, folder)["processes"][0]["state"] == "zombie"
    finally:
        child.wait()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "it is cut off or no JSON"),
        ('{"schema": 1, "run": "o', "it is cut off or no JSON"),
        ("[1]", "it is no ledger"),
        ('{"schema": 2}', "its schema is 2"),
        ('{"schema": 1}', "it lacks 'run'"),
        ("\x00\x01", "it is cut off or no JSON"),
        ("[" * 5000, "recursion"),
    ],
)
def test_what_is_no_ledger_is_reported_as_such(run: Run, folder: Path, text: str, why: str) -> None:
    write(folder)
    (folder / f"{GONE}.json").write_text(text)
    result = run("status", folder)
    assert result.exit_code == 1, result.output
    assert f"cannot be read:\n  {GONE}.json: " in result.stdout and why in result.stdout
    assert "Traceback" not in result.output


def test_every_torn_ledger_is_reported_and_none_is_a_traceback(run: Run, folder: Path) -> None:
    whole = write(folder, fallbacks=[FALLBACK], operators={"silu": {"golden": 3}})
    keys = list(json.loads(whole.read_text()))
    for key in keys:
        for value in (None, 3, "x", [1], {"a": 1}, True, 1.5):
            body = json.loads(whole.read_text())
            body[key] = value
            other = folder / f"{GONE}.json"
            other.write_text(json.dumps(body))
            for format in ("json", "text"):
                result = run("status", folder, "--format", format)
                assert result.exit_code in (0, 1), (key, value, result.output)
                assert result.exception is None or isinstance(result.exception, SystemExit)


def test_a_half_file_of_a_killed_process_is_reported(run: Run, folder: Path) -> None:
    write(folder)
    (folder / f"{GONE}.part").write_text('{"sche')
    (folder / f"{os.getpid()}.part").write_text('{"sche')  # being written at this moment
    (folder / "notes.json").write_text("of somebody else")
    body = said(run, folder)
    assert [u["file"] for u in body["unreadable"]] == [f"{GONE}.part"]
    assert "killed while it wrote" in body["unreadable"][0]["why"]


def test_a_half_file_of_another_run_or_container_is_no_fault(run: Run, folder: Path) -> None:
    write(folder)
    write(folder, "scheduler", GONE, parent=os.getpid(), host="another container")
    half = folder / f"{GONE}.part"  # it may be at it at this moment
    half.write_text('{"sche')
    assert said(run, folder)["unreadable"] == []
    older = folder / f"{GONE + 1}.part"
    older.write_text('{"sche')
    assert "unless it is one of another container" in said(run, folder)["unreadable"][0]["why"]
    os.utime(older, (0, 0))
    assert (said(run, folder)["unreadable"], said(run, folder)["code"]) == ([], 0)


def test_what_a_terminal_would_obey_is_spelt_out(run: Run, folder: Path) -> None:
    orders = "\x1b[31mred\x1b[0m"
    write(folder, orders, refused="\x1b]0;owned\x07\r\x9b2J\x7f\tstays\nnext")
    (folder / f"{GONE}.json").write_text('{"schema": "\\u001b[2J"}')
    text = run("status", folder, "--verbose").stdout
    assert (
        "\\x1b[31mred" in text and "\\x1b]0;owned\\x07\n    \\x9b2J\\x7f\tstays\n    next" in text
    )
    assert "its schema is" in text and not any(c in text for c in "\x1b\x07\r\x9b\x7f")


def test_a_folder_of_unreadable_files_alone(run: Run, folder: Path) -> None:
    write(folder).write_text("")
    text = run("status", folder).stdout
    assert "0 process" not in text and "parent" not in text
    assert text.endswith("can be read: something is wrong, see above.\n")
    assert said(run, folder)["processes"] == [] and said(run, folder)["code"] == 1


def test_a_ledger_in_the_place_of_its_folder(run: Run, folder: Path) -> None:
    result = run("status", write(folder))
    assert result.exit_code == 2 and "is a file" in result.stderr
    assert f"try: give {folder}\n" in result.stderr


FALLBACK = {
    "operator": "silu",
    "tier": "golden",
    "calls": 2,
    "refused": 0,
    "reason": "x=float16[*]",
    "call": "x=float16[2]",
    "why": "slow",
    "at": "recipe.yaml:3",
    "stack": [f"file.py:{n} in f{n}" for n in range(10)],
}


def test_fallbacks_and_calls_are_added_up(run: Run, folder: Path) -> None:
    calls = {"silu": {"fast": 5, "golden": 2}}
    write(folder, fallbacks=[FALLBACK], operators=calls)
    write(folder, "scheduler", GONE, parent=os.getpid(), fallbacks=[FALLBACK], operators=calls)
    body = said(run, folder)
    assert body["operators"] == {"silu": {"fast": 10, "golden": 4}}
    (one,) = body["fallbacks"]
    assert one["calls"] == 4 and [p["process"] for p in one["processes"]] == ["main", "scheduler"]
    text = run("status", folder).stdout
    assert (
        "silu: golden, 4 call(s) in main" in text
        and "for x=float16[*]; first x=float16[2] (recipe.yaml:3)" in text
    )
    assert "in f9" in text and "in f1\n" not in text and "calls (" not in text
    verbose = run("status", folder, "-v").stdout
    assert "in f1\n" in verbose and f"calls ({ledger.COUNTED})" in verbose


def test_an_earlier_run_in_the_folder_is_left_out(run: Run, folder: Path) -> None:
    write(folder, "main", GONE, run="old", started="2020-01-01T00:00:00Z", refused="no")
    write(folder)
    body = said(run, folder)
    assert body["code"] == 0 and body["earlier"] == 1 and len(body["processes"]) == 1


def test_runs_that_share_a_folder_are_told_apart(run: Run, folder: Path) -> None:
    write(folder)
    later = "2099-01-01T00:00:00Z"
    write(folder, "main", GONE, run="two", started=later, bindings=[binding("a"), binding("c")])
    body = said(run, folder)
    assert [(p["run"], p["process"]) for p in body["processes"]] == [
        ("one", "main"),
        ("two", "main"),
    ]
    # b is required and not in the second, which is no lack where the two are not one run.
    assert (body["code"], body["lacks"]) == (0, [])
    text = run("status", folder).stdout
    assert "2 runs share this folder; give each server one of its own\n" in text
    one, two = (
        text.index("\nrun 1 of 2, since "),
        text.index(f"\nrun 2 of 2, since {later}:\n"),
    )
    assert [p.start() > two for p in re.finditer(r"^main +\d", text, re.M)] == [False, True]
    assert one < two and "2 process(es), 1 running, 1 gone while others run" in text
    write(folder, "main", GONE, run="two", started=later, refused="no")
    assert said(run, folder)["ok"] is False and run("status", folder).exit_code == 1


def test_processes_that_differ_are_told(run: Run, folder: Path) -> None:
    write(folder)
    write(folder, "scheduler", GONE, parent=os.getpid(), release="1.1.0")
    assert said(run, folder)["differing"] == {"release": ["1.1.0", "1.2.0"]}


def test_processes_without_a_ledger_are_seen_from_outside(run: Run, folder: Path) -> None:
    write(folder)
    write(folder, "scheduler", GONE, parent=GONE + 5)
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        unseen = {u["pid"]: u["what"] for u in said(run, folder)["unseen"]}
    finally:
        child.kill()
        child.wait()
    assert unseen[GONE + 5] == f"parent of scheduler {GONE}"
    assert "time.sleep(60)" in unseen[child.pid]


def test_there_is_no_run(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "no run is named" in run("status").stderr
    for path in (folder, folder.parent):
        result = run("status", path)
        assert result.exit_code == 2 and not result.stdout
    write(folder)
    monkeypatch.setenv(ledger.RUN_DIR, str(folder))
    assert run("status").exit_code == 0


def test_injected_faults_are_said_for_the_whole_run(run: Run, folder: Path) -> None:
    fault = "nan kunlun_ops.swiglu"
    for pid, fired in ((None, 2), (GONE, 3)):
        write(folder, pid=pid, simulator_faults=[{"fault": fault, "fired": fired}])
    text = run("status", str(folder)).stdout
    assert f"faults injected into the simulated device:\n  {fault}: fired 5 times\n" in text
    body = json.loads(run("status", str(folder), "--format", "json").stdout)
    assert [p["simulator_faults"][0]["fired"] for p in body["processes"]] == [2, 3]


def keys_of(value: Any) -> set[str]:
    """The keys of an object and of those in it, but for those that are names of things."""
    if isinstance(value, list):
        return {key for one in value for key in keys_of(one)}
    if not isinstance(value, dict):
        return set()
    inner = {k for name, v in value.items() if name not in NAMED for k in keys_of(v)}
    return set(value) | inner


NAMED = ("operators", "ranks", "counts", "states", "differing")


def test_every_key_is_documented(run: Run, folder: Path) -> None:
    chosen = [{"what": "x", "value": "1", "why": "because"}]
    faults = [{"fault": "nan kunlun_ops.swiglu", "fired": 2}]
    more = {"fallbacks": [FALLBACK], "chosen": chosen, "simulator_faults": faults}
    path = write(folder, **more)
    write(folder, "scheduler", GONE, parent=GONE + 5, bindings=[binding("c", "pending")])
    (folder / "1.json").write_text("torn")
    body = said(run, folder)
    page = (ROOT / "docs" / "json.md").read_text(encoding="utf-8")
    sections = {part.partition("\n")[0]: part for part in page.split("\n## ")}
    for heading, told in (
        ("`kunlun-adapt status --format json`", body),
        ("The ledger: `<run directory>/<pid>.json`", json.loads(path.read_text())),
    ):
        # Fallbacks are described with the ledger.
        known = set(re.findall(r'"(\w+)"', sections[heading])) | set(FALLBACK)
        assert keys_of(told) - {"code"} <= known, heading

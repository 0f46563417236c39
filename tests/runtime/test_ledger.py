"""The ledger: what a process writes down, whatever its disk, its threads and its forks do."""

from __future__ import annotations

import json
import logging
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kunlun_adapt.runtime import ledger
from tests.runtime.stage import SHOW, STARTED, Stage, fine


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(ledger, "LEDGER", ledger.Ledger())
    monkeypatch.setattr(ledger, "_settlers", [])
    monkeypatch.setattr(ledger, "_file", ledger._File())
    yield


@pytest.fixture
def run_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(ledger.RUN_DIR, str(tmp_path / "run"))
    return tmp_path / "run"


def written(run_dir: Path) -> Any:
    return json.loads((run_dir / f"{os.getpid()}.json").read_text(encoding="utf-8"))


def test_the_file_holds_bindings_tiers_and_fallbacks(run_dir: Path) -> None:
    ledger.LEDGER.map, ledger.LEDGER.map_revision = "tiny", "abc"
    ledger.enter("b", True).state = "applied"
    ledger.enter("a", False).fail("why")
    ledger.tally("silu", ("fast", "golden"))[1] += 2
    for reason, calls in (("x=float16[*]", 2), ("x=float16[*, *]", 1)):
        one = ledger.Fallback(
            "silu", "golden", reason, "x=float16[1]", "slow", "r.yaml:3", ("f",), calls
        )
        ledger.LEDGER.fallbacks["silu", "golden", reason] = one
    ledger.choose("env.TINY", "1", "the map's default")
    ledger.LEDGER.planned, ledger.LEDGER.excluded = 3, 4
    ledger.write()
    found = written(run_dir)
    assert [(b["id"], b["state"], b["detail"]) for b in found["bindings"]] == [
        ("a", "failed", "why"),
        ("b", "applied", ""),
    ]
    assert found["operators"] == {"silu": {"fast": 0, "golden": 2}}
    first = {"operator": "silu", "tier": "golden", "refused": 0, "stack": ["f"]}
    why = {"call": "x=float16[1]", "why": "slow", "at": "r.yaml:3"}
    assert found["fallbacks"] == [
        {**first, **why, "reason": "x=float16[*, *]", "calls": 1},
        {**first, **why, "reason": "x=float16[*]", "calls": 2},
    ]
    assert found["chosen"] == [{"what": "env.TINY", "value": "1", "why": "the map's default"}]
    assert (found["planned"], found["excluded"]) == (3, 4)
    assert found["counted"] == "eager calls and captures"
    assert (found["schema"], found["map"], found["map_revision"]) == (1, "tiny", "abc")
    assert found["process"] == "main" and found["pid"] == os.getpid()


def test_without_a_folder_nothing_is_written(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.delenv(ledger.RUN_DIR, raising=False)
    monkeypatch.chdir(tmp_path)
    ledger.write()
    ledger.start_writer()
    assert not list(tmp_path.iterdir())


def test_pending_bindings_are_looked_at_before_each_writing(run_dir: Path) -> None:
    entry = ledger.enter("late", True)
    ledger.settle_with(lambda: setattr(entry, "state", "applied"))
    ledger.write()
    assert written(run_dir)["bindings"][0]["state"] == "applied"


def test_a_disk_that_fails_is_said_once_and_serving_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv(ledger.RUN_DIR, str(blocked))
    with caplog.at_level(logging.WARNING):
        ledger.write()
        ledger.write()
    assert caplog.text.count("the ledger cannot be written") == 1
    blocked.unlink()
    ledger.write()
    assert written(blocked)["schema"] == 1
    blocked.joinpath(f"{os.getpid()}.json").unlink()
    blocked.rmdir()
    blocked.write_text("")
    ledger.enter("new", True)
    with caplog.at_level(logging.WARNING):
        ledger.write()
    assert caplog.text.count("the ledger cannot be written") == 2, "it had worked in between"


FULL = """
import os, resource, signal
from pathlib import Path
from kunlun_adapt.runtime import ledger

os.environ[ledger.RUN_DIR] = "run"
ledger.enter("first", True)
ledger.write()
whole = next(Path("run").iterdir()).read_text()
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
resource.setrlimit(resource.RLIMIT_FSIZE, (len(whole) + 50, hard))
ledger.enter("second", True).fail("x" * 200)
ledger.write()
(left,) = Path("run").iterdir()
print(left.suffix, left.read_text() == whole)
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
ledger.write()
print([p.suffix for p in Path("run").iterdir()], "second" in left.read_text())
"""


def test_a_disk_that_fills_up_keeps_the_last_whole_report(stage: Stage) -> None:
    done = stage.run(FULL)
    assert fine(done).splitlines() == [".json True", "['.json'] True"]
    assert done.stderr.count("the ledger cannot be written") == 1


def test_a_run_is_told_from_another_and_its_end_from_a_kill(stage: Stage) -> None:
    run = str(stage.root / "run")
    fine(stage.run(STARTED, KUNLUN_ADAPT_RUN_DIR=run))
    (ended,) = [json.loads(p.read_text()) for p in (stage.root / "run").iterdir()]
    assert ended["ended"] and str(ended["pid"]) in ended["run"]
    kill = STARTED + "import os, time; time.sleep(0.2); os.kill(os.getpid(), 9)"
    assert stage.run(kill, KUNLUN_ADAPT_RUN_DIR=run, write=False).returncode == -9
    found = [json.loads(p.read_text()) for p in (stage.root / "run").glob("*.json")]
    (killed,) = [one for one in found if one["pid"] != ended["pid"]]
    assert not killed["ended"] and killed["run"] != ended["run"]
    assert killed["host"] == ended["host"] and killed["born"] != ended["born"]


def test_threads_may_count_while_it_is_written(run_dir: Path) -> None:
    stop = threading.Event()
    errors: list[BaseException] = []

    def count(name: str) -> None:
        number = 0
        while not stop.is_set():
            number = (number + 1) % 300
            ledger.enter(f"{name}{number}", True)
            ledger.tally(f"{name}{number % 50}", ("t",))[0] += 1

    def write() -> None:
        try:
            for _ in range(10):
                ledger.write()
                written(run_dir)
        except BaseException as error:
            errors.append(error)

    counting = [threading.Thread(target=count, args=(n,)) for n in "ab"]
    writing = [threading.Thread(target=write) for _ in range(2)]
    for thread in (*counting, *writing):
        thread.start()
    for thread in writing:
        thread.join()
    stop.set()
    for thread in counting:
        thread.join()
    assert not errors
    assert [p.suffix for p in run_dir.iterdir()] == [".json"]


def ledgers(stage: Stage) -> dict[str, Any]:
    found = [json.loads(p.read_text()) for p in (stage.root / "run").glob("*.json")]
    return {one["process"]: one for one in found}


PROCESSES = """
import multiprocessing, os, sys, time

def affinity(gpu_id=0):  # named as the map's process.scheduler is
    import sglang.srt.utils.common, sglang.srt.layers as layers, ours
    layers.silu(ours.Thing())
    time.sleep(1.2)

def nobody():
    time.sleep(1.2)

def main(how):
    os.environ["KUNLUN_ADAPT_RUN_DIR"] = "run"
    import sglang.srt.utils.common, sglang.srt.layers as layers, ours
    from kunlun_adapt.runtime import roles
    layers.silu(ours.Thing())
    os.chdir("/")
    context = multiprocessing.get_context(how)
    children = [context.Process(target=t) for t in (affinity, nobody)]
    for child in children:
        child.start()
    if how == "fork":
        pid = os.fork()
        if not pid:
            print("bare fork:", roles.current(), flush=True)
            os._exit(0)
        os.waitpid(pid, 0)
    for child in children:
        child.join()
"""


@pytest.mark.parametrize("how", ["fork", "spawn"])
def test_children_keep_ledgers_of_their_own(stage: Stage, how: str) -> None:
    stage = stage.add("processes.py", PROCESSES)
    out = fine(stage.run(f"import processes\nif __name__ == '__main__': processes.main({how!r})"))
    found = ledgers(stage)
    served = {name: one["operators"].get("silu", {}).get("golden") for name, one in found.items()}
    assert served["main"] == 1 and served["scheduler"] == 1
    assert set(found) <= {"main", "scheduler", "other"}
    assert found["scheduler"]["parent"] == found["main"]["pid"]
    if how == "fork":
        assert out.strip() == "bare fork: other"
        assert served["other"] == 0, "what the parent counted is the parent's"


def test_the_last_state_is_written_at_the_end(stage: Stage) -> None:
    code = STARTED + SHOW + "import ours; layers.silu(ours.Thing())"
    fine(stage.run(code, KUNLUN_ADAPT_RUN_DIR=str(stage.root / "run")))
    assert ledgers(stage)["main"]["operators"] == {"silu": {"golden": 1}}
    assert {b["state"] for b in ledgers(stage)["main"]["bindings"]} == {"applied"}
    assert ledgers(stage)["main"]["map"] == "tiny"
    assert len(ledgers(stage)["main"]["map_revision"]) == 12

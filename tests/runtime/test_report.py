"""The start-up table: once per process, when the hooks are read back and somebody listens."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator

import pytest

from kunlun_adapt.runtime import ledger, report
from tests.runtime.stage import SHOW, STARTED, Stage, fine

LISTEN = "import logging; logging.basicConfig(level=logging.INFO, format='%(message)s')\n"
TABLE = "kunlun-adapt in the "


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(ledger, "LEDGER", ledger.Ledger(release="1.2.0", map="tiny"))
    monkeypatch.setattr(ledger, "_settlers", [])
    yield


def test_it_is_said_once_after_the_hooks_are_read_back(stage: Stage) -> None:
    done = stage.run(LISTEN + STARTED + SHOW + "load_plugins()")
    fine(done)
    assert done.stderr.count(TABLE) == 1
    head, *rows = done.stderr[done.stderr.index(TABLE) :].splitlines()
    assert "the main process" in head and "sglang 1.2.0, map tiny" in head
    assert "profile card" in head
    assert rows[0].split(None, 1) == ["bindings", "5 applied, 0 planned, 3 excluded"]
    assert any(r.startswith("  chosen") and "env.TINY_SETTING=1" in r for r in rows)


def test_it_waits_for_the_logging_to_be_set_up(stage: Stage) -> None:
    code = STARTED + SHOW + "import sys; print('quiet', file=sys.stderr)\n" + LISTEN
    code += "import time\ntime.sleep(1.5)\n"
    done = stage.run(code)
    fine(done)
    assert done.stderr.count(TABLE) == 1
    assert done.stderr.index("quiet") < done.stderr.index(TABLE)


def test_a_process_without_the_hook_door_says_it_in_the_end(stage: Stage) -> None:
    code = "from kunlun_adapt.runtime import report; report.PATIENCE = 0.2\n" + LISTEN + STARTED
    done = stage.run(code + "import time\ntime.sleep(2)\n" + SHOW)
    assert "'choices': 'applied'" in fine(done)
    assert done.stderr.count(TABLE) == 1
    assert " 4 applied, 1 missing, " in done.stderr, "all but the hook"
    why = "SGLang has not loaded its plugins yet, 0.2 s after the process began"
    assert f"  missing     {why}: choices" in done.stderr
    warning = f"1 hook(s) are not in effect in the main process: {why}: choices"
    late = "the hooks of the main process are in effect now"
    assert done.stderr.index(warning) < done.stderr.index(TABLE) < done.stderr.index(late)


def test_a_process_that_still_imports_is_not_called_late(stage: Stage) -> None:
    slow = "import time\n\ntime.sleep(1.5)\nfrom sglang.srt.plugins import load_plugins\n"
    code = "from kunlun_adapt.runtime import report; report.PATIENCE = 0.3\n" + LISTEN + STARTED
    done = stage.add("slow.py", slow).run(code + "import slow\nslow.load_plugins()\n")
    fine(done)
    assert " 5 applied, " in done.stderr and "not in effect" not in done.stderr


def test_a_quiet_process_stays_quiet(stage: Stage) -> None:
    done = stage.run(STARTED + SHOW + "import time\ntime.sleep(0.6)\n")
    fine(done)
    assert done.stderr == ""


FORK = """
import multiprocessing, time

def affinity():  # named as the map's process.scheduler is
    time.sleep(2)

def nobody():
    time.sleep(2)

def main():
    import logging
    logging.basicConfig(level=logging.INFO, format='%(message)s')
    import sglang.srt.utils.common
    from sglang.srt.plugins import load_plugins
    load_plugins()
    context = multiprocessing.get_context("fork")
    children = [context.Process(target=t) for t in (affinity, nobody)]
    for child in children:
        child.start()
    for child in children:
        child.join()
"""


def test_a_forked_process_of_the_map_says_its_own(stage: Stage) -> None:
    done = stage.add("forking.py", FORK).run("import forking; forking.main()")
    fine(done)
    assert done.stderr.count(f"{TABLE}main process") == 1
    assert done.stderr.count(f"{TABLE}scheduler process") == 1
    assert done.stderr.count(TABLE) == 2


def test_the_table_counts_and_names_what_is_not_applied() -> None:
    for name in ("a", "b"):
        ledger.enter(name, True).state = "applied"
    ledger.enter("c", False).fail("gone")
    ledger.enter("d", True).state = "disabled"
    for name in ("e", "f"):
        entry = ledger.enter(name, True)
        entry.state, entry.detail = "elsewhere", "for scheduler only"
    ledger.enter("g", True)
    ledger.LEDGER.planned, ledger.LEDGER.excluded = 7, 8
    ledger.choose("factory/pool", "ours.pools:Pool", "handed out by the platform")
    rows = [" ".join(line.split()) for line in report.table()[1:]]
    assert rows == [
        "bindings 2 applied, 1 pending, 1 failed, 1 disabled, 2 elsewhere, 7 planned, 8 excluded",
        "failed c (not required): gone",
        "disabled d:",
        "elsewhere for scheduler only: e, f",
        "pending upstream has not imported it yet: g",
        "not here kunlun-adapt list bindings --status planned --status excluded",
        "chosen factory/pool=Pool",
    ]
    assert [line.split()[:2] for line in report.every_binding()[1:3]] == [
        ["applied", "a"],
        ["applied", "b"],
    ]


def test_the_simulator_is_named_as_such() -> None:
    ledger.LEDGER.profile = "simulator"
    assert "no card; vendor operators are stand-ins" in report.table()[1]
    ledger.LEDGER.unverified = True
    assert "outside the claim: unverified" in report.table()[0]


def test_a_table_of_many_bindings_stays_compact() -> None:
    for number in range(300):
        ledger.enter(f"operator/binding{number}", True).state = "applied"
    assert len(report.table()) <= 4
    assert len(report.every_binding()) == 301


def test_it_is_said_by_one_of_two_that_come_at_once(caplog: pytest.LogCaptureFixture) -> None:
    teller = report._Teller()
    with caplog.at_level(logging.INFO):
        threads = [threading.Thread(target=teller.say) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert caplog.text.count(TABLE) == 1

"""Hooks that nobody registers: which processes are warned of them, and which are ended."""

from __future__ import annotations

import subprocess

import pytest

from kunlun_adapt.runtime import ledger, roles
from kunlun_adapt.runtime.owed import NOT_YET, UNNAMED, Owed
from tests.runtime.sabotages import AFFINITY, WORKER, hooked
from tests.runtime.stage import MAP, Stage, fine, refused

HEAD = """\
import time
from kunlun_adapt.runtime import report

report.PATIENCE = 0.6
import sglang.srt.utils.common
from sglang.srt.plugins import load_plugins
"""
BEGIN = """

class Starter:
    def load(self):
        load_plugins()


def begin():
    Starter().load()
"""
START = """
import multiprocessing, sys
import sglang.srt.utils.common
from kunlun_adapt.runtime import report
from sglang.srt.plugins import load_plugins
import sglang.srt.worker
load_plugins()
worker = multiprocessing.get_context({how!r}).Process(target=sglang.srt.worker.run)
worker.start()
worker.join()
sys.exit(worker.exitcode)
"""


def start(
    stage: Stage, body: str, how: str = "spawn", *, lazily: bool = False
) -> subprocess.CompletedProcess[str]:
    """Start a process that the map names, with a hook of its own, which runs `body`.

    Unless it is to come to that `lazily`, the module of what it runs imports the platform.
    """
    named = stage.edit(MAP, "left_at_default:", f"{WORKER}left_at_default:")
    worker = AFFINITY.replace("    impl:", "    process: [detokenizer]\n    impl:")
    head = "import time\n" if lazily else HEAD + BEGIN
    text = f"{head}\n\ndef run():\n    {body}\n"
    return hooked(named, worker).add("sglang/srt/worker.py", text).run(START.format(how=how))


def test_who_loads_plugins_later_is_only_warned_of(stage: Stage) -> None:
    done = start(stage, "time.sleep(2); load_plugins()")
    fine(done)
    assert f"2 hook(s) are not in effect in the detokenizer process: {NOT_YET}" in done.stderr
    assert "the hooks of the detokenizer process are in effect now" in done.stderr


def test_who_has_loaded_them_without_us_is_ended(stage: Stage) -> None:
    done = start(stage, "(lambda load_plugins: 0)(load_plugins); time.sleep(60)")
    refused(done, "near", "run has loaded SGLang's plugins, and our entry point was not called")


@pytest.mark.parametrize("how", ["spawn", "fork"])
def test_who_never_loads_them_does_not_begin(stage: Stage, how: str) -> None:
    done = start(stage, "print('begun', flush=True); time.sleep(50)", how)
    refused(done, "near")
    assert "begun" not in done.stdout


def test_who_never_loads_them_and_meets_the_platform_late_gets_no_further(stage: Stage) -> None:
    late = "import sglang.srt.utils.common; print('met', flush=True); time.sleep(50)"
    done = start(stage, late, lazily=True)
    refused(done, "near", "run never calls load_plugins(): let process.detokenizer")
    assert "met" not in done.stdout


def test_who_loads_them_through_another_function_is_let_be(stage: Stage) -> None:
    done = start(stage, "begin(); print('begun')")
    assert fine(done) == "begun\n" and "not in effect" not in done.stderr


def test_who_was_forked_with_the_hooks_of_another_is_ended(stage: Stage) -> None:
    done = start(stage, "time.sleep(60)", how="fork")
    text = refused(done, "near", "start the detokenizer by spawn, as SGLang does: it was forked")
    assert "choices" not in text, "what is for every process is in effect in the fork, too"


@pytest.fixture
def owed(monkeypatch: pytest.MonkeyPatch) -> Owed:
    monkeypatch.setattr(ledger, "LEDGER", ledger.Ledger())
    one = Owed()
    one.replace("all", "sglang.a", required=True, impl="a:b")
    one.set("some", "sglang.b", required=True, value=1, process=("scheduler",))
    return one


def states() -> dict[str, tuple[str, str]]:
    return {e.id: (e.state, e.detail) for e in ledger.LEDGER.entries.values()}


def test_all_are_pending_at_first(owed: Owed) -> None:
    assert states() == {"all": ("pending", NOT_YET), "some": ("pending", NOT_YET)}


def test_a_process_lacks_what_is_for_it(
    owed: Owed, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(roles, "current", lambda: "main")
    owed.overdue(15.0)
    why = f"{NOT_YET}, 15 s after the process began"
    assert states() == {"all": ("missing", why), "some": ("elsewhere", "for scheduler only")}
    assert caplog.messages == [f"1 hook(s) are not in effect in the main process: {why}: all"]
    monkeypatch.setattr(roles, "current", lambda: "scheduler")
    assert [e.id for e in owed.missing()] == ["all", "some"]


def test_a_process_without_a_name_is_warned_of_and_lacks_nothing(
    owed: Owed, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(roles, "current", lambda: roles.OTHER)
    owed.overdue(15.0)
    assert states() == {"all": ("pending", UNNAMED), "some": ("pending", NOT_YET)}
    assert caplog.messages == [f"1 hook(s) are not in effect in the other process: {UNNAMED}: all"]


def test_what_is_in_effect_or_switched_off_is_not_missed(
    owed: Owed, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(roles, "current", lambda: "scheduler")
    ledger.LEDGER.entries["all"].state = "applied"
    ledger.LEDGER.entries["some"].state = "disabled"
    owed.overdue(15.0)
    owed.paid()
    assert not caplog.messages and owed.missing() == []

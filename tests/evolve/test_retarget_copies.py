"""A value that upstream copies while it imports: what sets the original is not carried unseen."""

from __future__ import annotations

import pytest

from kunlun_adapt.diagnostics import Severity
from kunlun_adapt.evolve.retarget import Retargeted
from tests.evolve import test_retarget_engine as engine
from tests.evolve.test_retarget_engine import (
    COMMON,
    MAP,
    SCHEDULER,
    UPSTREAM,
    Carry,
    Edits,
    carry,
    line,
    of,
)

__all__ = ["carry"]  # a fixture of the engine's tests

DEFINED = 'CHOICES = ["triton"]\n'
CONSTS, FIELDS = "sglang/srt/consts.py", "sglang/srt/fields.py"
THERE = "sglang.srt.consts.CHOICES"
IMPORTED = "from sglang.srt.consts import CHOICES\n"
MOVES: Edits = {COMMON: (DEFINED, IMPORTED), CONSTS: ("", DEFINED)}
SETS = {
    MAP: (
        "type: extend\n    value: [kunlun]\n    at:\n      - {target",
        'type: set\n    value: [kunlun]\n    at:\n      - {sglang: ">=0.5.19,<0.5.20", target',
    )
}
READ = "\n\ndef accepts(name):\n    return name in CHOICES\n"
LOADS = f"from sglang.srt.utils import common\n{UPSTREAM[SCHEDULER]}"


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the scheduler import the module of the value before it loads plugins."""
    text = UPSTREAM[COMMON] + READ.replace("\n", "\n        ")
    monkeypatch.setattr(engine, "UPSTREAM", {**UPSTREAM, SCHEDULER: LOADS, COMMON: text})


def errors(done: Retargeted) -> list[int]:
    return [report.count(Severity.ERROR) for report in done.after]


def test_what_nobody_has_copied_by_then_is_carried(carry: Carry) -> None:
    done = carry(MOVES, documents=SETS)
    account = of(done, "choices")
    assert (account.outcome, account.values) == ("carried", {"target": THERE})


@pytest.mark.usefixtures("loaded")
def test_a_copy_that_a_repair_reaches_is_proposed_with_it(carry: Carry) -> None:
    done = carry({}, MOVES, documents=SETS, proposals=True)
    account = of(done, "choices")
    assert account.outcome == "proposed" and account.codes == ("KA108", "KA117")
    assert account.added == {"repair": ["sglang.srt.utils.common.CHOICES"]}
    assert errors(done) == [0, 0, 0]
    assert not [f for f in done.after[-1].findings if f.code == "KA117"]
    assert "    repair: [sglang.srt.utils.common.CHOICES]" in line(done, "+ ")


@pytest.mark.usefixtures("loaded")
@pytest.mark.parametrize(
    "copied",
    [
        IMPORTED,  # there is no such name in the old release, and a repair has no range
        f"{IMPORTED}NAMES = tuple(CHOICES)\n",
    ],
)
def test_a_copy_that_no_repair_reaches_is_named(carry: Carry, copied: str) -> None:
    by_then = ("from sglang.srt.utils import common", "from sglang.srt import fields")
    done = carry({**MOVES, FIELDS: ("", copied), SCHEDULER: by_then}, {}, documents=SETS)
    account = of(done, "choices")
    assert account.outcome == "proposed" and not account.taken and not account.added
    assert "is copied on import in sglang/srt/fields.py:1" in account.says[-1]
    assert "choices" not in done.patch and "CHOICES" not in done.patch


@pytest.mark.usefixtures("loaded")
def test_a_value_that_stays_and_is_copied_now(carry: Carry) -> None:
    copies = "from sglang.srt.utils.common import CHOICES\n"
    by_then = ("from sglang.srt.utils import common", "from sglang.srt import fields")
    done = carry({FIELDS: ("", copies), SCHEDULER: by_then}, documents=SETS)
    account = of(done, "choices")
    assert (account.outcome, account.codes, account.review) == ("proposed", ("KA117",), ())
    assert "choices" not in done.patch

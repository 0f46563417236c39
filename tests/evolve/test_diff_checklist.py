"""The migration checklist: what opens a step, and what ticks it off."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kunlun_adapt.evolve import lock_for
from kunlun_adapt.evolve.diff import Risk
from kunlun_adapt.upstream import Lock
from tests.check.bench import MAP, Bench
from tests.evolve.diffs import NEW, Pair, following, item

COMMON = "sglang/srt/utils/common.py"


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    return Pair.of(Bench(tmp_path))


def locked(pair: Pair) -> Pair:
    """The pair with the new release in the lock, as it is now."""
    lock, missing = lock_for(pair.new.catalog(), following(pair.new))
    assert missing == ()
    return replace(pair, lock=Lock().replaced(lock))


def test_a_signature_is_open_until_the_entry_serves_it(pair: Pair) -> None:
    inserted = pair.edit(COMMON, "tp_size, nnodes=1)", "tp_size, ranks, nnodes=1)")
    step = item(inserted.diff(), "set_affinity")
    assert not step.done and step.risk is Risk.HIGH
    assert [f.code for f in step.findings] == ["KA105"]
    assert "KA105" in step.codes and step.bindings == ("affinity",)
    assert "ranks" in step.todo
    mended = inserted.edit(
        MAP, "tp_size: $any, nnodes: 1}", "tp_size: $any, ranks: $any, nnodes: 1}"
    )
    step = item(locked(mended).diff(), "set_affinity")
    assert step.done and step.findings == () and step.unlocked == ()


def test_a_body_is_open_until_it_is_locked(pair: Pair) -> None:
    edited = pair.edit(COMMON, "return gpu_id", "return gpu_id + 1")
    step = item(edited.diff(), "set_affinity")
    assert not step.done and step.unlocked == ("sglang.srt.utils.common.set_affinity",)
    assert f"--sglang {NEW}" in step.todo
    assert item(locked(edited).diff(), "set_affinity").done


def test_a_lock_of_another_body_does_not_tick_it_off(pair: Pair) -> None:
    first = locked(pair.edit(COMMON, "return gpu_id", "return gpu_id + 1"))
    again = first.edit(COMMON, "return gpu_id + 1", "return gpu_id + 2")
    step = item(again.diff(), "set_affinity")
    assert not step.done
    assert [f.code for f in step.findings] == ["KA106"]


def test_a_moved_symbol_is_open_until_the_document_names_it(pair: Pair) -> None:
    body = "def set_affinity(gpu_id, tp_size, nnodes=1):\n            return gpu_id\n"
    moved = pair.edit(COMMON, body, "pass_ = 1\n").add(
        "sglang/srt/utils/host.py",
        "def set_affinity(gpu_id, tp_size, nnodes=1):\n    return gpu_id\n",
    )
    step = item(moved.diff(), "set_affinity")
    assert not step.done and [f.code for f in step.findings] == ["KA102"]
    entry = '- {sglang: ">=0.5.18", target: sglang.srt.utils.common.set_affinity'
    stay = '- {sglang: ">=0.5.18,<0.5.19", target: sglang.srt.utils.common.set_affinity'
    rest = ", args: {gpu_id: gpu_id}, ignores: {tp_size: $any, nnodes: 1}}"
    go = '- {sglang: ">=0.5.19", target: sglang.srt.utils.host.set_affinity'
    graphs = "sglang/srt/model_executor/graphs.py"
    users = moved.edit(graphs, "utils.common import set_affinity", "utils.host import set_affinity")
    mended = users.edit(MAP, entry + rest, f"{stay}{rest}\n      {go}{rest}")
    diff = locked(mended).diff()
    assert not [s for s in diff.open_items if "set_affinity" in s.title]
    (found,) = [c for c in diff.changes if "set_affinity" in c.subject]
    assert found.followed and found.risk is Risk.LOW


def test_what_no_change_explains_is_a_step_as_well(pair: Pair) -> None:
    wrong = pair.edit(
        MAP, "target: sglang.srt.utils.common.CHOICES", "target: sglang.srt.utils.common.NONE"
    )
    step = item(wrong.diff(), "choices: target-missing")
    assert not step.done and step.risk is Risk.HIGH and step.changes == ()
    assert step.codes == ("KA101",) and step.bindings == ("choices",)


def test_what_is_about_no_change_is_no_step(pair: Pair) -> None:
    same = locked(pair)
    bare = same.edit(MAP, '{sglang: ">=0", verified', '{sglang: "<0.5", verified')
    codes = [f.code for f in bare.new.findings(lock=bare.lock)]
    assert "KA501" in codes
    assert bare.diff().checklist == same.diff().checklist


def test_a_warning_that_the_old_release_has_as_well_is_no_step(pair: Pair) -> None:
    graphs, use = "sglang/srt/model_executor/graphs.py", "return silu_and_mul(x)"
    lost = pair.edit(graphs, use, "return x")
    assert "KA119" in [f.code for s in locked(lost).diff().open_items for f in s.findings]
    never = lost.before(graphs, use, "return x")
    assert "KA119" in [f.code for f in replace(never.new, used=True).findings()]
    assert "KA119" not in [f.code for s in locked(never).diff().open_items for f in s.findings]


def test_what_is_still_to_be_written_has_no_body_to_look_at(pair: Pair) -> None:
    edited = pair.edit(COMMON, "return gpu_id", "return gpu_id + 1")
    planned = edited.edit(MAP, "    type: replace\n", "    type: replace\n    status: planned\n")
    diff = planned.diff()
    assert [c.status for c in diff.changes if "set_affinity" in c.subject] == ["planned"]
    assert not [s for s in diff.checklist if "set_affinity" in s.title]


def test_open_steps_come_first_and_the_gravest_of_them_before_others(pair: Pair) -> None:
    edited = pair.edit(COMMON, "tp_size, nnodes=1)", "tp_size, ranks, nnodes=1)")
    steps = locked(edited.edit(COMMON, '["triton"]', '["triton", "x"]')).diff().checklist
    assert [(s.done, s.risk.rank) for s in steps] == sorted((s.done, s.risk.rank) for s in steps)
    planned = edited.edit(MAP, "    type: replace\n", "    type: replace\n    status: planned\n")
    also = planned.edit(
        "sglang/kernels/ops/activation.py",
        "(input, out=None):\n            return input\n\n        @triton.jit",
        "(input, rows, out=None):\n            return input\n\n        @triton.jit",
    )
    grave = [s.status for s in also.diff().checklist if s.risk is Risk.HIGH]
    assert grave == sorted(grave) and {*grave} == {"bound", "planned"}
    assert any(s.done for s in steps) and not all(s.done for s in steps)


def test_families_leave_out_the_steps_of_others(pair: Pair) -> None:
    edited = pair.edit(COMMON, "return gpu_id", "return gpu_id + 1").edit(
        "sglang/kernels/ops/activation.py",
        "return input\n\n        @triton.jit",
        "return 1\n\n        @triton.jit",
    )
    diff = edited.diff()
    assert {"activation", "host"} & set(diff.families) == {"activation"}
    only = diff.of_families(["activation"])
    assert {c.family for c in only.changes} == {s.family for s in only.checklist} == {"activation"}


def test_a_release_without_a_door_for_plugins_has_one_step(pair: Pair) -> None:
    closed = pair.drop("sglang/srt/platforms").drop("sglang/srt/plugins")
    (step,) = closed.diff().checklist
    assert step.codes == ("KA205",) and not step.done

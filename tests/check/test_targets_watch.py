"""KA116, and what KA106 and KA107 say of planned bindings and of what is watched."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kunlun_adapt.diagnostics import Finding, Severity
from kunlun_adapt.documents import load_catalog
from kunlun_adapt.evolve.lock import lock_for
from kunlun_adapt.upstream import Lock
from tests.check.bench import MAP, RECIPE, Bench
from tests.check.examples import ACTIVATION, COMMON
from tests.check.examples_targets import RUNNER, hook
from tests.check.said import codes, only

REPLAY = "sglang.srt.runner.GraphRunner.replay"


def watching(bench: Bench, path: str = REPLAY) -> Bench:
    return bench.edit(MAP, "    value: [kunlun]\n", f"    value: [kunlun]\n    watch: [{path}]\n")


def locked(bench: Bench) -> Lock:
    """Lock the bench as the command does."""
    resolver = bench.resolver()
    bench.report(facts=resolver)
    lock, missing = lock_for(load_catalog(bench.root / "workspace"), resolver)
    assert not missing
    return lock


def said(bench: Bench, lock: Lock, *wanted: str) -> list[Finding]:
    return [f for f in bench.findings(lock=lock) if f.code in wanted]


def test_the_lock_holds_what_is_watched(bench: Bench) -> None:
    lock = locked(watching(bench))
    assert lock.symbol("0.5.19", REPLAY) is not None
    assert codes(watching(bench).findings(lock=lock)) == []
    operator = bench.edit(
        RECIPE,
        "args: {x: input, out: out}",
        f"args: {{x: input, out: out}}\n    watch: [{REPLAY}]",
    )
    assert locked(operator).symbol("0.5.19", REPLAY) is not None


def test_what_one_entry_watches_is_watched_in_its_releases(bench: Bench) -> None:
    choices = "{target: sglang.srt.utils.common.CHOICES"
    gone = REPLAY.replace("replay", "step")
    here = f'{{sglang: ">=0.5.19", watch: [{REPLAY}], target: sglang.srt.utils.common.CHOICES'
    there = f'{{sglang: "<0.5.19", watch: [{gone}], target: sglang.srt.utils.common.CHOICES}}'
    changed = bench.edit(MAP, choices, f"{there}\n      - {here}")
    lock = locked(changed)
    assert lock.symbol("0.5.19", REPLAY) is not None
    assert said(changed, lock, "KA107", "KA116") == []
    found = only(said(changed.edit(RUNNER, "return batch", "return 0"), lock, "KA116"), "KA116")
    assert str(found.position) == changed.place(MAP, REPLAY)
    older = changed.version("0.5.18")
    assert gone in only(said(older, locked(older), "KA116"), "KA116").message


def test_what_is_watched_and_not_locked_is_said(bench: Bench) -> None:
    found = only(said(watching(bench), locked(bench), "KA107"), "KA107")
    assert found.target == REPLAY and found.binding == "choices"


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("return batch", "return batch + 1", "its body changed"),
        ("skip=False", "skip=True", "signature (self, batch, skip=True)"),
        ("def replay", "async def replay", "its body changed"),
    ],
)
def test_a_watched_function_that_changed(bench: Bench, old: str, new: str, says: str) -> None:
    lock = locked(watching(bench))
    changed = watching(bench).edit(RUNNER, old, new)
    found = only(said(changed, lock, "KA116"), "KA116")
    assert says in found.message and found.severity is Severity.WARNING
    assert str(found.position) == changed.place(MAP, REPLAY)


def test_a_comment_is_no_change(bench: Bench) -> None:
    lock = locked(watching(bench))
    changed = watching(bench).edit(RUNNER, "return batch", "return batch  # as it is")
    assert said(changed, lock, "KA106", "KA116") == []


def test_a_release_that_is_not_locked_is_compared_with_the_one_before(bench: Bench) -> None:
    lock = locked(watching(bench).version("0.5.18"))
    assert said(watching(bench), lock, "KA116") == []
    changed = watching(bench).edit(RUNNER, "return batch", "return batch + 1")
    found = only(said(changed, lock, "KA116"), "KA116")
    assert "when 0.5.18 was locked" in found.message
    later = locked(watching(bench).version("0.5.20"))
    assert said(changed, later, "KA116") == []


def test_a_watched_function_that_is_gone(bench: Bench) -> None:
    gone = watching(bench, "sglang.srt.runner.GraphRunner.replays")
    found = only(gone.findings(), "KA116")
    assert "sglang 0.5.19 has no sglang.srt.runner.GraphRunner.replays" in found.message
    assert REPLAY in (found.suggestion or "")


def test_a_planned_binding_drifts_like_a_bound_one(bench: Bench) -> None:
    planned = bench.add(COMMON, "def free(size):\n    pass\n").edit(
        MAP, *hook("around", "sglang.srt.utils.common.free", ", args: {size: size}")
    )
    planned = planned.edit(MAP, "why: a third one\n", "why: a third one\n    status: planned\n")
    lock = locked(planned)
    assert said(planned, lock, "KA106", "KA107") == []
    changed = planned.edit(COMMON, "def free(size):\n    pass", "def free(size):\n    return size")
    found = only(said(changed, lock, "KA106"), "KA106")
    assert found.binding == "third" and "its body changed" in found.message
    without = replace(lock, entries={k: e for k, e in lock.entries.items() if "free" not in k[1]})
    assert only(said(planned, without, "KA107"), "KA107").binding == "third"
    assert ACTIVATION in planned.upstream

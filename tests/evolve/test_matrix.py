"""How bindings stand in several releases: each state, what it was compared with, and who counts."""

from __future__ import annotations

import os
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import pytest

from kunlun_adapt.evolve import lock_for
from kunlun_adapt.evolve.matrix import (
    Job,
    State,
    bindings_in,
    check_all,
    joined,
    shown_releases,
    states_in,
    work,
)
from kunlun_adapt.upstream import Lock, ReleaseError
from tests.check.bench import MAP, Bench
from tests.evolve.diffs import following
from tests.evolve.matrices import CLAIM, COMMON, bench, last, matrix, release, row, states

SET = "sglang.srt.utils.common.set_affinity"
ITS_PLACE = f"""      - {{sglang: ">=0.5.18", target: {SET}, args: {{gpu_id: gpu_id}}, ignores: {{tp_size: $any, nnodes: 1}}}}
"""  # noqa: E501 -- as it stands in the map


@pytest.fixture
def small(tmp_path: Path) -> Bench:
    return bench(tmp_path)


def test_what_is_the_same_holds(small: Bench) -> None:
    found = matrix(small, release(small, "0.5.19"), release(small, "0.5.18"))
    assert [column.release for column in found.columns] == ["0.5.18", "0.5.19"]
    assert {state for item in found.rows for state in item.states} == {State.HOLDS}
    assert not found.broken and not last(found, "affinity").changes
    assert last(found, "affinity").since == "0.5.18"
    assert row(found, "affinity").cells[0].since == ""
    families = [item.family for item in found.rows]
    assert families == sorted(families) and set(families) == set(found.families)


def test_another_body_and_another_signature_are_changes(small: Bench) -> None:
    other = small.edit(COMMON, "return gpu_id", "return gpu_id + 0")
    other = other.edit(
        "sglang/srt/layers/activation.py",
        "forward_native(self, x)",
        "forward_native(self, x, scale=1)",
    )
    found = matrix(small, release(small, "0.5.18"), release(other, "0.5.19"))
    assert states(found, "affinity") == ["holds", "changed"]
    assert last(found, "affinity").changes == ("its body changed",)
    # An operator of a class stands for its forward, and is called with what that takes.
    told = last(found, "silu_and_mul/SiluAndMul").changes
    assert "forward: signature (self, x, scale=1), was (self, x)" in told
    assert states(found, "choices") == ["holds", "holds"]


def test_another_target_has_moved(small: Bench) -> None:
    old = small.edit(COMMON, "def set_affinity(gpu_id", "def set_gpu_affinity(gpu_id")
    ignoring = 'args: {gpu_id: gpu_id}, ignores: {tp_size: $any, nnodes: 1}}\n      - {sglang: ">='
    small = small.edit(MAP, 'args: {gpu_id: gpu_id}}\n      - {sglang: ">=', ignoring)
    found = matrix(small, release(old, "0.5.17"), release(small, "0.5.18"))
    assert states(found, "affinity") == ["holds", "moved"]
    cell = last(found, "affinity")
    assert cell.target == SET and cell.since == "0.5.17"
    assert cell.changes == (f"target {SET}, was sglang.srt.utils.common.set_gpu_affinity",)


def test_a_member_that_is_spelled_otherwise_has_moved(small: Bench) -> None:
    both = small.edit(
        "sglang/srt/platforms/interface.py",
        "    def supports_mamba",
        "    def support_cuda_graph(self):\n                return False\n\n"
        "            def supports_mamba",
    )
    graphs = "sglang/srt/model_executor/graphs.py"
    both = both.add(graphs, "def asked(platform):\n    return platform.support_cuda_graph()\n")
    found = matrix(both, release(both, "0.5.17"), release(both, "0.5.18"))
    cell = last(found, "factory/capabilities.graph_capture")
    assert cell.changes[0].endswith(
        "was sglang.srt.platforms.interface.SRTPlatform.support_cuda_graph"
    )
    assert row(found, "factory/capabilities.graph_capture").cells[1].state is State.MOVED


def test_the_same_path_that_leads_elsewhere_has_changed(small: Bench) -> None:
    file = "sglang/srt/runner.py"
    text = small.upstream[file]
    other = small.drop(file).add("sglang/srt/runners.py", text)
    other = other.add(file, "from sglang.srt.runners import GraphRunner\n")
    found = matrix(small, release(small, "0.5.18"), release(other, "0.5.19"))
    cell = last(found, "factory/graph_runner")
    assert cell.state is State.CHANGED
    told = "class: defined in sglang.srt.runners.GraphRunner, was sglang.srt.runner.GraphRunner"
    assert cell.changes == (told,)


def test_planned_and_excluded_say_why(small: Bench) -> None:
    made = small.edit(MAP, "    type: replace\n", "    type: replace\n    status: planned\n")
    made = made.edit(
        MAP,
        "    type: extend\n",
        '    type: extend\n    excluded: [{sglang: "==0.5.19", why: it has no such list}]\n',
    )
    found = matrix(made, release(made, "0.5.18"), release(made, "0.5.19"), release(made, "0.5.20"))
    assert states(found, "affinity") == ["planned"] * 3
    assert states(found, "choices") == ["holds", "excluded", "holds"]
    assert row(found, "choices").cells[1].why == "it has no such list"
    assert bindings_in(found.rows, 1)["planned"] == 1 == states_in(found.rows, 1)[State.PLANNED]
    assert not found.broken


def test_what_was_left_out_is_compared_with_the_release_before_that(small: Bench) -> None:
    made = small.edit(
        MAP,
        "    type: extend\n",
        '    type: extend\n    excluded: [{sglang: "==0.5.19", why: it has no such list}]\n',
    )
    new = small.edit(COMMON, '["triton"]', '["triton", "torch"]')
    releases = (release(small, "0.5.18"), release(small, "0.5.19"), release(new, "0.5.20"))
    found = matrix(made, *releases)
    assert states(found, "choices") == ["holds", "excluded", "changed"]
    assert last(found, "choices").since == "0.5.18"


def test_an_error_breaks_a_binding_and_names_its_code(small: Bench) -> None:
    gone = small.edit(COMMON, "def set_affinity(", "def nothing_alike(")
    found = matrix(small, release(small, "0.5.18"), release(gone, "0.5.19"))
    assert states(found, "affinity") == ["holds", "broken"] and found.broken
    assert last(found, "affinity").codes == ("KA101",)
    assert last(found, "affinity").status == "bound"
    assert [error.code for error in found.columns[1].errors] == ["KA101"]
    planned = small.edit(MAP, "    type: replace\n", "    type: replace\n    status: planned\n")
    assert states(matrix(planned, release(gone, "0.5.19")), "affinity") == ["broken"]


def test_an_error_about_no_binding_stays_with_the_release(small: Bench) -> None:
    gone = small.edit("sglang/srt/managers/scheduler.py", "run_scheduler_process", "run")
    found = matrix(small, release(gone, "0.5.19"))
    assert {s for item in found.rows for s in item.states} == {State.HOLDS} and found.broken
    assert {error.binding for error in found.columns[0].errors} == {None}


def test_outside_the_claim_nothing_is_said_unless_asked(small: Bench) -> None:
    gone = release(small.edit(COMMON, "def set_affinity(", "def nothing_alike("), "0.5.30")
    found = matrix(small, release(small, "0.5.19"), gone)
    assert states(found, "affinity") == ["holds", "excluded"] and not found.broken
    assert last(found, "affinity").why == f"the map claims {CLAIM}"
    assert not found.columns[1].claimed
    beyond = matrix(small, release(small, "0.5.19"), gone, beyond=True)
    assert states(beyond, "affinity") == ["holds", "broken"]
    assert not beyond.broken, "nobody claimed it"
    assert not last(beyond, "affinity").claimed and beyond.columns[1].errors


def test_beyond_its_own_claim_a_binding_does_not_count(small: Bench) -> None:
    gone = release(small.edit(COMMON, "def set_affinity(", "def nothing_alike("), "0.5.20")
    narrow = small.edit(MAP, ITS_PLACE, ITS_PLACE.replace(">=0.5.18", ">=0.5.18,<0.5.20"))
    within = matrix(narrow, gone)
    assert last(within, "affinity").codes == ("KA008",), "it should claim what the map claims"
    assert within.broken and not last(within, "affinity").claimed
    beyond = matrix(narrow, gone, beyond=True)
    assert states(beyond, "affinity") == ["broken"] and beyond.columns[0].claimed
    assert not last(beyond, "affinity").claimed and not beyond.broken


def test_without_a_door_everything_is_left_out(small: Bench) -> None:
    shut = release(small.drop("sglang/srt/plugins").drop("sglang/srt/platforms"), "0.5.18")
    found = matrix(small, shut, release(small, "0.5.19"))
    assert {item.cells[0].state for item in found.rows} == {State.EXCLUDED} and found.broken
    assert bindings_in(found.rows, 0) == {"bound": 0, "planned": 0, "excluded": len(found.rows)}
    assert "has no sglang.srt.platforms and no sglang.srt.plugins" in found.columns[0].shut
    assert {item.cells[1].state for item in found.rows} == {State.HOLDS}


def test_what_is_not_as_it_was_locked_has_changed(small: Bench) -> None:
    was = release(small, "0.5.19")
    lock, missing = lock_for(small.catalog(), following(was))
    assert not missing
    assert states(matrix(small, was, lock=lock), "affinity") == ["holds"]
    patched = release(small.edit(COMMON, "return gpu_id", "return 0"), "0.5.19")
    cell = last(matrix(small, patched, lock=lock), "affinity")
    assert cell.state is State.CHANGED and cell.since == ""
    assert cell.changes == ("the lock has another: its body changed",)


def test_some_rows_only(small: Bench) -> None:
    gone = small.edit(COMMON, "def set_affinity(", "def nothing_alike(")
    found = matrix(small, release(small, "0.5.18"), release(gone, "0.5.19"))
    family = row(found, "affinity").family
    assert found.only((), ()) == found
    assert [item.id for item in found.only((), (State.BROKEN,)).rows] == ["affinity"]
    assert found.only((), (State.PLANNED,)).broken, "what is not shown is broken all the same"
    others = found.only([name for name in found.families if name != family], ())
    assert not others.broken and others.rows and not others.columns[1].errors


def test_processes_find_what_one_finds(small: Bench) -> None:
    gone = small.edit(COMMON, "def set_affinity(", "def nothing_alike(")
    catalog = small.catalog()
    folders = []
    for item in (release(small, "0.5.18"), release(gone, "0.5.19")):
        item.resolver()
        folders.append(str(item.root / "release"))
    said: list[tuple[str, float | None]] = []
    job = Job(small.root / "workspace", Lock())
    here = check_all(job, catalog, folders, processes=1)
    there = check_all(
        job, catalog, folders, processes=2, progress=lambda text, part: said.append((text, part))
    )
    assert [item.release for item in there] == ["0.5.18", "0.5.19"]
    assert joined(there, claim=CLAIM) == joined(here, claim=CLAIM)
    assert said[0] == ("0 of 2", 0.0) and said[-1][1] == 1.0 and len(said) == 3


def test_what_processes_leave_undone_is_done_here(
    small: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Dying:
        def __init__(self, *arguments: object) -> None: ...

        def submit(self, *arguments: object) -> object:
            raise BrokenProcessPool("killed")

        def shutdown(self, **arguments: object) -> None: ...

    monkeypatch.setattr(work, "ProcessPoolExecutor", Dying)
    item = release(small, "0.5.19")
    item.resolver()
    other = release(small, "0.5.18")
    other.resolver()
    folders = [str(b.root / "release") for b in (item, other)]
    found = check_all(Job(small.root, Lock()), small.catalog(), folders, processes=2)
    assert [item.release for item in found] == ["0.5.19", "0.5.18"]


def test_a_release_that_cannot_be_read_says_so(small: Bench) -> None:
    catalog = small.catalog()
    job = Job(small.root / "workspace", Lock())
    with pytest.raises(ReleaseError, match="names no release"):
        check_all(job, catalog, ["/nowhere/at/all"], processes=1)
    with pytest.raises(ReleaseError, match="names no release"):
        check_all(job, catalog, ["/nowhere/at/all", "/nor/here"], processes=2)


def test_the_releases_that_are_shown(small: Bench, tmp_path: Path) -> None:
    held = tmp_path / "cache" / "releases"
    held.mkdir(parents=True)
    for name in ("0.5.20", "0.5.18", "0.5.30", "0.5.9"):
        (held / f"sglang-{name}-py3-none-any.whl").touch()
    (held / "sglang-strange.whl").touch()
    lock, _ = lock_for(small.catalog(), following(release(small, "0.5.19")))
    shown = shown_releases(CLAIM, lock, tmp_path / "cache")
    assert shown == ("0.5.18", "0.5.19", "0.5.20")
    assert shown_releases(CLAIM, Lock(), tmp_path / "none") == ()


def test_cores_are_those_that_may_be_used() -> None:
    assert 1 <= work.cores() <= (os.cpu_count() or 1)

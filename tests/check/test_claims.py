"""KA011 and KA313: what is claimed and not verified, and what is planned and not bound."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kunlun_adapt.upstream import Lock
from tests.check.bench import MAP, RECIPE, Bench
from tests.check.examples import lock_of
from tests.check.examples_documents import PLANNED
from tests.check.said import codes, only

OLD = "sglang.srt.utils.common.CHOICES"


def locked(bench: Bench, *releases: str, without: str | None = None) -> Lock:
    """Lock the bench's release under several versions; the last ones lack a target."""
    one = lock_of(bench)
    entries, hashes = dict(one.entries), dict(one.hashes)
    for release in releases:
        hashes[release] = one.hashes["0.5.19"]
        for (_, target), entry in one.entries.items():
            if target != without:
                entries[release, target] = replace(entry, release=release)
    return Lock(entries, hashes)


def test_what_lies_between_two_locked_releases_exists(bench: Bench) -> None:
    found = only(bench.findings(lock=locked(bench, "0.5.22")), "KA011")
    assert "claims sglang 0.5.20 and 0.5.21," in found.message
    assert str(found.position) == bench.place(MAP, '">=0.5.17,<0.5.24"')
    assert (
        found.suggestion is not None and "lock --sglang 0.5.20 --sglang 0.5.21" in found.suggestion
    )


def test_no_release_is_made_up(bench: Bench) -> None:
    assert codes(bench.findings(lock=lock_of(bench))) == []
    assert codes(bench.findings(lock=locked(bench, "0.5.18"))) == []
    # Nothing is known between two minors, and post releases have no place in the count.
    assert codes(bench.findings(lock=locked(bench, "0.4.3", "0.5.19.post1"))) == []


def test_only_claimed_releases_count(bench: Bench) -> None:
    narrow = bench.edit(MAP, ">=0.5.17,<0.5.24", ">=0.5.17,<0.5.20")
    assert codes(narrow.findings(lock=locked(bench, "0.5.22"))) == []


def test_of_the_checked_release_another_code_speaks(bench: Bench) -> None:
    lock = locked(bench, "0.5.21")
    found = bench.version("0.5.20").findings(lock=lock)
    assert codes(found) == ["KA107"]


@pytest.mark.parametrize("row", ['"0.5.18"', '"not a version"', '">=0.5"', '"1.2.99999999"'])
def test_rows_of_the_stack_name_releases(bench: Bench, row: str) -> None:
    changed = bench.edit(MAP, "stack:\n", f"stack:\n  - {{sglang: {row}, torch: 'x'}}\n")
    found = [f for f in changed.findings(lock=lock_of(bench)) if f.code == "KA011"]
    assert len(found) == (row == '"0.5.18"')


def test_a_binding_that_claims_more_than_was_locked_of_it(bench: Bench) -> None:
    lock = locked(bench, "0.5.18", without=OLD)
    found = only(bench.findings(lock=lock), "KA011")
    assert found.binding == "choices"
    assert f"choices claims sglang 0.5.18 as well, and adapt.lock holds {OLD} for 0.5.19 only" in (
        found.message
    )
    narrow = bench.edit(MAP, f"- {{target: {OLD}", f'- {{sglang: ">=0.5.19", target: {OLD}')
    assert codes(narrow.findings(lock=lock)) == []
    excluded = bench.edit(
        MAP,
        "    value: [kunlun]",
        '    value: [kunlun]\n    excluded: [{sglang: "==0.5.18", why: a b}]',
    )
    assert codes(excluded.findings(lock=lock)) == []


def test_an_operator_that_claims_more_than_was_locked_of_it(bench: Bench) -> None:
    target = "sglang.srt.layers.activation.SiluAndMul"
    found = only(bench.findings(lock=locked(bench, "0.5.18", without=target)), "KA011")
    assert found.binding == "silu_and_mul/SiluAndMul"
    assert found.position.file == RECIPE


def test_a_binding_that_was_never_locked_is_said_once(bench: Bench) -> None:
    lock = locked(bench, "0.5.18", without=OLD)
    entries = {key: entry for key, entry in lock.entries.items() if entry.target != OLD}
    assert codes(bench.findings(lock=Lock(entries, lock.hashes))) == ["KA107"]


def planned(bench: Bench, *ids: str) -> Bench:
    text = "".join(PLANNED.replace("id: sizes", f"id: {name}") for name in ids)
    return bench.edit(MAP, "  - id: choices\n", f"{text}  - id: choices\n")


def test_planned_bindings_are_counted_once_for_each_document(bench: Bench) -> None:
    changed = planned(bench, "one", "two").edit(MAP, "id: one", "id: first")
    changed = changed.edit(RECIPE, "capture: safe", "capture: safe\nstatus: planned")
    said = [f for f in changed.findings() if f.code == "KA313"]
    assert [f.position.file for f in said] == [RECIPE, MAP]
    assert said[0].message.startswith(f"2 bindings of {RECIPE} are planned (activation 2)")
    assert said[1].message.startswith(f"2 bindings of {MAP} are planned (memory 2)")
    assert said[1].position.line < changed.workspace[MAP].splitlines().index("  - id: two") + 1
    assert {f.severity.value for f in said} == {"info"}


def test_one_planned_binding_is_named(bench: Bench) -> None:
    found = only(planned(bench, "sizes").findings(), "KA313")
    assert found.binding == "sizes"
    assert found.message.startswith(f"1 binding of {MAP} is planned (memory 1)")


def test_what_is_bound_in_one_profile_is_not_planned(bench: Bench) -> None:
    assert codes(bench.findings()) == []


def test_nothing_is_planned_for_a_release_that_is_not_claimed(bench: Bench) -> None:
    changed = planned(bench, "sizes").version("0.5.30")
    assert codes(changed.findings()) == ["KA009"]

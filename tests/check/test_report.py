from __future__ import annotations

import pytest

from kunlun_adapt.check import RULES
from kunlun_adapt.diagnostics import CODES
from kunlun_adapt.upstream import LockFacts
from tests.check.bench import MAP, RECIPE, Bench
from tests.check.examples import lock_of
from tests.check.said import codes, only


def test_the_bench_has_no_findings(bench: Bench) -> None:
    report = bench.report(lock=lock_of(bench))
    assert [(str(f.position), f.message) for f in report.findings] == []
    assert report.release == "0.5.19"
    # 5 of the device, 4 factories and a method, 2 capabilities, 2 hooks, 2 places of the operator.
    assert (report.bound, report.planned, report.excluded) == (16, 0, 0)


def test_each_rule_stands_once(bench: Bench) -> None:
    assert len(set(RULES)) == len(RULES)
    # KA001 to KA004 and KA006 are found where documents are read, KA012 once all rules have spoken.
    assert len(RULES) == len(CODES) - 6


def test_a_binding_of_one_profile_counts_once(bench: Bench) -> None:
    changed = bench.edit(
        MAP, "    value: [kunlun]\n", "    value: [kunlun]\n    profiles: [card]\n"
    )
    assert changed.report().bound == 16
    later = "    value: [kunlun]\n    status: planned\n"
    planned = bench.edit(MAP, "    value: [kunlun]\n", later)
    report = planned.report()
    assert (report.bound, report.planned, report.excluded) == (15, 1, 0)


def test_a_map_that_does_not_load_gives_its_findings_alone(bench: Bench) -> None:
    report = bench.edit(MAP, "kind: PlatformMap", "kind: Platformap").report()
    only(report.findings, "KA002")
    assert (report.bound, report.planned, report.excluded) == (0, 0, 0)


def test_a_broken_recipe_does_not_hide_what_else_is_wrong(bench: Bench) -> None:
    changed = bench.edit(RECIPE, "kind: OperatorRecipe", "kind: Operator")
    changed = changed.edit(MAP, "common.CHOICES", "common.CHOICE")
    assert codes(changed.findings()) == ["KA002", "KA101"]


def test_findings_are_sorted_by_place_and_said_once(bench: Bench) -> None:
    changed = bench.edit(MAP, "common.CHOICES", "common.CHOICE")
    changed = changed.edit(RECIPE, "mutates: [out]", "mutates: [oot]")
    changed = changed.edit(MAP, "sglang.srt.runner:GraphRunner", "sglang.srt.runner:GraphRunne")
    findings = changed.findings()
    assert codes(findings) == ["KA005", "KA101", "KA101"]
    places = [f.position for f in findings]
    assert places == sorted(places)


def test_the_facts_of_the_lock_are_enough_to_check(bench: Bench) -> None:
    facts = LockFacts(lock_of(bench), "0.5.19")
    assert codes(bench.findings(facts=facts)) == []
    moved = bench.edit(MAP, "common.CHOICES", "common.CHOICE")
    only(moved.findings(facts=facts), "KA101")


@pytest.mark.parametrize("version", ["0.5.16", "0.5.24", "0.5.24.post1", "0.6.0", "1.0.0rc1"])
def test_a_release_that_is_not_claimed_says_only_that(bench: Bench, version: str) -> None:
    changed = bench.version(version).edit(MAP, "common.CHOICES", "common.CHOICE")
    found = only(changed.findings(), "KA009")
    assert f"sglang {version} is not among" in found.message
    assert ("before the nearest bound, 0.5.17" in found.message) is (version == "0.5.16")


def test_beyond_its_claims_every_binding_is_checked(bench: Bench) -> None:
    changed = bench.version("0.5.30").edit(MAP, "common.CHOICES", "common.CHOICE")
    only(changed.findings(beyond=True), "KA101")
    assert codes(bench.version("0.5.30").findings(beyond=True)) == []

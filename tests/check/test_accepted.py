"""KA012: acceptances that meet no warning, and those of which nothing can be said."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kunlun_adapt.check import check_release
from kunlun_adapt.check.context import Context
from kunlun_adapt.check.usage import usage_row
from kunlun_adapt.diagnostics import CODES, Finding, Severity
from kunlun_adapt.diagnostics.selection import Selection
from kunlun_adapt.plan import make_plan
from kunlun_adapt.upstream import Lock, LockFacts
from tests.check.bench import MAP, RECIPE, Bench
from tests.check.examples import AFFINITY, lock_of
from tests.check.examples_documents import ACCEPTS
from tests.check.said import codes, only

VALUE = "    value: [kunlun]\n"
PIN = "    why: pin each worker to the cores near its card\n"


def accepting(bench: Bench, entry: str, after: str = PIN) -> Bench:
    """Let the hook `affinity` (or what stands there) accept something."""
    return bench.edit(MAP, after, f"{after}    accepts: [{entry}]\n")


def unused(findings: tuple[Finding, ...]) -> list[Finding]:
    return [f for f in findings if f.code == "KA012"]


def test_an_operators_place(bench: Bench) -> None:
    entry = "    args: {x: input, out: out}\n"
    accepts = "    accepts: [{code: KA104, why: nobody asks torch}]\n"
    changed = bench.edit(RECIPE, entry, entry + accepts)
    found = only(changed.findings(), "KA012")
    assert found.binding == "silu_and_mul/silu_and_mul"
    assert str(found.position) == changed.place(RECIPE, "KA104")
    assert found.message == "KA104 is accepted, and there is no such warning in sglang 0.5.19"


def test_the_top_of_the_map(bench: Bench) -> None:
    changed = bench.add(MAP, "accepts:\n  - {code: KA211, why: no op of ours}\n")
    found = only(changed.findings(), "KA012")
    assert found.binding is None
    assert str(found.position) == changed.place(MAP, "KA211")


@pytest.mark.parametrize(
    ("range", "said"), [("<0.5.19", False), (">=0.5.19", True), ("!=0.5.19", False)]
)
def test_only_for_releases_of_its_range(bench: Bench, range: str, said: bool) -> None:
    changed = accepting(bench, f'{{code: KA113, sglang: "{range}", why: guarded}}')
    assert codes(changed.findings()) == (["KA012"] if said else [])


def test_each_entry_of_a_list_for_itself(bench: Bench) -> None:
    uses = replace(bench, used=True)  # nothing in the bench calls what the hook changes: KA119
    changed = accepting(uses, "{code: KA119, why: called from outside}, {code: KA113, why: none}")
    findings = changed.findings()
    assert [str(f.position) for f in unused(findings)] == [changed.place(MAP, "KA113")]
    accepted = next(f for f in findings if f.code == "KA119" and f.binding == "affinity")
    assert accepted.severity is Severity.INFO


def test_a_binding_that_does_not_hold_here(bench: Bench) -> None:
    """Of what is left out no rule speaks but the one that asks whether it should be."""
    excluded = '    excluded: [{sglang: ">=0.5.19,<0.5.20", why: another way there}]\n'
    for code, said in (("KA113", []), ("KA121", ["KA012"])):
        changed = accepting(bench, f"{{code: {code}, why: looked at}}")
        assert codes(changed.edit(MAP, PIN, PIN + excluded).findings()) == said
    held = accepting(bench, "{code: KA121, why: looked at}")
    assert codes(held.findings()) == []


def test_a_range_of_an_operators_place_that_does_not_hold_here(bench: Bench) -> None:
    entry = "  - target: sglang.kernels.ops.activation.silu_and_mul\n    style: function\n"
    older = entry + (
        '    sglang: "<0.5.18"\n    args: {x: input, out: out}\n'
        "    accepts: [{code: KA113, why: two of them there}]\n"
    )
    newer = entry + '    sglang: ">=0.5.18"\n'
    assert codes(bench.edit(RECIPE, entry, older + newer).findings()) == []


def test_an_error_comes_first(bench: Bench) -> None:
    changed = accepting(bench, "{code: KA113, why: guarded}")
    gone = changed.edit(MAP, AFFINITY, AFFINITY.replace("set_affinity", "nowhere"))
    assert codes(gone.findings()) == ["KA101"]


def test_a_release_that_is_not_claimed(bench: Bench) -> None:
    changed = accepting(bench, "{code: KA113, why: guarded}").version("0.5.30")
    assert codes(changed.findings()) == ["KA009"]
    assert unused(changed.findings(beyond=True)) == []


def test_what_is_asked_of_the_lock(bench: Bench) -> None:
    changed = accepting(bench, "{code: KA106, why: looked at}")
    assert codes(changed.findings()) == []
    assert unused(changed.findings(lock=Lock())) == []
    assert codes(changed.findings(lock=lock_of(bench))) == ["KA012"]


def test_the_facts_of_the_lock_tell_too_little(bench: Bench) -> None:
    lock = lock_of(bench)
    changed = accepting(bench, "{code: KA113, why: guarded}")
    assert unused(changed.findings(facts=LockFacts(lock, "0.5.19"), lock=lock)) == []


def test_what_the_lock_replays_counts(bench: Bench) -> None:
    """A finding that is read from the lock is accepted as one that was found."""
    changed = accepting(bench, "{code: KA119, why: called from outside}")
    catalog, facts, lock = changed.catalog(), changed.resolver(), lock_of(bench)
    assert catalog.platform_map is not None
    plans = (make_plan(catalog, facts, "card"),)
    context = Context(catalog, catalog.platform_map, facts, plans, lock)
    row = usage_row(context)
    held = check_release(catalog, facts, lock=lock.with_usage("0.5.19", row))
    assert unused(held.findings) == []
    assert [f["code"] for f in row["bindings"]["affinity"].pop("findings")] == ["KA119"]
    other = check_release(catalog, facts, lock=lock.with_usage("0.5.19", row))
    assert [f.binding for f in unused(other.findings)] == ["affinity"]


def test_ignored_codes_are_not_spoken_of(bench: Bench) -> None:
    changed = bench.edit(MAP, VALUE, ACCEPTS + VALUE)
    for given, said in (
        (Selection.of(ignore=["KA118"]), []),
        (Selection.of(ignore=["KA1"]), []),
        (Selection.of(ignore=["KA119"]), ["KA012"]),
        (Selection.of(ignore=["KA1"], select=["KA118", "KA0"]), ["KA012"]),
        (Selection.of(select=["KA012"]), ["KA012"]),
        (Selection.of(select=["KA118"]), []),
    ):
        report = check_release(changed.catalog(), changed.resolver(), ignored=given.ignores)
        assert codes(unused(given.of_report(report).findings)) == said, given


@pytest.mark.parametrize(
    ("code", "what"),
    [
        ("KA101", "is an error in every release, and errors are not accepted"),
        ("KA105", "is an error in every release, and errors are not accepted"),
        ("KA310", "is information in every release, and only warnings are accepted"),
    ],
)
def test_what_is_never_a_warning_is_to_be_removed(bench: Bench, code: str, what: str) -> None:
    """No range of releases would help: there is none in which it is accepted."""
    changed = accepting(bench, f"{{code: {code}, why: looked at}}")
    found = only(changed.findings(), "KA012")
    assert found.message == f"{code} {what}"
    assert found.suggestion == "remove the entry"
    gone = changed.edit(MAP, "common.set_affinity", "common.set_afinity_of_worker")
    assert [f.message for f in unused(gone.findings())] == [found.message]


def test_an_errors_code_that_may_warn_is_an_error_here(bench: Bench) -> None:
    entry = "  - target: sglang.kernels.ops.activation.silu_and_mul\n    style: function\n"
    accepts = "    accepts: [{code: KA104, why: nobody asks torch}]\n"
    wrong = entry.replace("silu_and_mul", "silu_kernel")
    changed = bench.edit(RECIPE, entry, wrong + accepts)
    found = unused(changed.findings())
    assert [f.message for f in found] == ["KA104 is an error here, and errors are not accepted"]
    assert CODES["KA301"].never_warns is CODES["KA118"].never_warns is False

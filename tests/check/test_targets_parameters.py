"""KA114: a parameter before the mapped ones, told apart from one that was forgotten or renamed."""

from __future__ import annotations

import pytest

from kunlun_adapt.diagnostics import Severity
from tests.check.bench import MAP, RECIPE, Bench
from tests.check.examples import ACTIVATION, COMMON, lock_of
from tests.check.said import codes, only

SILU = "def silu_and_mul(input, out=None)"
AFFINITY = "def set_affinity(gpu_id, tp_size, nnodes=1)"


def test_a_parameter_before_a_mapped_one(bench: Bench) -> None:
    changed = bench.edit(ACTIVATION, SILU, "def silu_and_mul(input, limit=None, out=None)")
    found = only(changed.findings(), "KA114")
    assert found.severity is Severity.ERROR
    assert "'limit' stands before 'out'" in found.message
    assert "would land in 'limit'" in found.message
    assert found.suggestion == "`ignores: {limit: null}`"


def test_an_older_release_in_the_lock_is_named(bench: Bench) -> None:
    lock = lock_of(bench.version("0.5.18"))
    changed = bench.edit(ACTIVATION, SILU, "def silu_and_mul(input, limit=None, out=None)")
    found = only([f for f in changed.findings(lock=lock) if f.code == "KA114"], "KA114")
    assert "; in 0.5.18 the call does not have it: " in found.message


def test_what_an_older_release_had_was_only_forgotten(bench: Bench) -> None:
    changed = bench.edit(ACTIVATION, SILU, "def silu_and_mul(input, limit=None, out=None)")
    lock = lock_of(changed.version("0.5.18"))
    found = [f for f in changed.findings(lock=lock) if f.code in ("KA105", "KA114")]
    assert "neither mapped nor ignored" in only(found, "KA105").message


def test_another_range_of_the_binding_knew_the_call_without_it(bench: Bench) -> None:
    changed = bench.edit(COMMON, AFFINITY, "def set_affinity(pp_size, gpu_id, tp_size, nnodes=1)")
    found = only(changed.findings(), "KA114")
    assert "; in its mapping for <0.5.18 the call does not have it" in found.message
    assert found.binding == "affinity"


@pytest.mark.parametrize(
    "signature",
    [
        "def silu_and_mul(input, out=None, limit=None)",
        "def silu_and_mul(input, out=None, *, limit=None)",
    ],
)
def test_a_parameter_behind_the_mapped_ones_is_the_lesser_fault(
    bench: Bench, signature: str
) -> None:
    only(bench.edit(ACTIVATION, SILU, signature).findings(), "KA105")


def test_a_new_name_is_no_new_parameter(bench: Bench) -> None:
    renamed = bench.edit(ACTIVATION, SILU, "def silu_and_mul(x, out=None)")
    assert codes(renamed.findings()) == ["KA105", "KA105"]


def test_one_before_and_one_behind_are_two_findings(bench: Bench) -> None:
    changed = bench.edit(
        ACTIVATION, SILU, "def silu_and_mul(input, limit=None, out=None, alpha=1.0)"
    )
    by_code = {f.code: f for f in changed.findings()}
    assert sorted(by_code) == ["KA105", "KA114"]
    assert "'alpha'" in by_code["KA105"].message and "'limit'" not in by_code["KA105"].message


def test_a_parameter_that_is_mapped_or_ignored_is_quiet(bench: Bench) -> None:
    changed = bench.edit(ACTIVATION, SILU, "def silu_and_mul(input, limit=None, out=None)")
    ignored = changed.edit(
        RECIPE,
        "args: {x: input, out: out}",
        "args: {x: input, out: out}\n    ignores: {limit: null}",
    )
    assert codes(ignored.findings()) == []
    assert "affinity" in ignored.workspace[MAP]


@pytest.mark.parametrize(
    ("allowed", "said"), [("1", False), ("$any", False), ("2", True), ("null", True)]
)
def test_a_default_must_not_be_refused(bench: Bench, allowed: str, said: bool) -> None:
    changed = bench.edit(MAP, "nnodes: 1}", f"nnodes: {allowed}}}")
    found = [f for f in changed.findings() if f.code == "KA105"]
    assert len(found) == said
    if said:
        assert "upstream's default is 1: every call that leaves it out" in found[0].message
        assert found[0].suggestion == "`ignores: {tp_size: $any, nnodes: 1}`"

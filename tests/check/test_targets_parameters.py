# ruff: noqa: E501 -- the YAML lines of the tables stay whole
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
    found = only(renamed.findings(), "KA105")
    assert "'x' reads 'input', which upstream does not have" in found.message
    assert found.suggestion == "did you mean x?"


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


SERVED = "args: {x: input, out: out}"
SLIPS = [
    (SERVED, "args: {x: inputt, out: out}", "KA105", "inputt", "did you mean input?"),
    (SERVED, "args: {x: inputs.shape, out: out}", "KA105", "inputs.", "did you mean input?"),
    (SERVED, "args: {x: gone, out: out}", "KA105", "gone", "did you mean input?"),
    (SERVED, "args: {x: $grid, out: out}", "KA105", "$grid", "did you mean input?"),
    (SERVED, "args: {xx: input, out: out}", "KA005", "xx: input", "did you mean x?"),
    (SERVED, "args: {value: input, out: out}", "KA005", "value: input", "did you mean x?"),
    (SERVED, "args: {x: input, oot: out}", "KA005", "oot: out", "did you mean out?"),
    (SERVED, "args: {out: out}", "KA105", "{out: out}", "`args: {out: out, x: input}`"),
    ("args: {x: x}", "args: {y: x}", "KA005", "y: x", "did you mean x?"),
]


@pytest.mark.parametrize(("old", "new", "code", "needle", "suggestion"), SLIPS)
def test_one_slip_is_one_finding(
    bench: Bench, old: str, new: str, code: str, needle: str, suggestion: str
) -> None:
    changed = bench.edit(RECIPE, old, new)
    found = only(changed.findings(), code)
    assert str(found.position) == changed.place(RECIPE, needle)
    assert found.suggestion == suggestion


def test_a_slip_in_what_a_hook_ignores_is_one_finding(bench: Bench) -> None:
    changed = bench.edit(MAP, "ignores: {tp_size", "ignores: {tp_siz")
    assert only(changed.findings(), "KA105").suggestion == "did you mean tp_size?"


def test_two_slips_are_two_findings(bench: Bench) -> None:
    changed = bench.edit(RECIPE, SERVED, "args: {xx: inputt, out: out}")
    assert sorted(codes(changed.findings())) == ["KA005", "KA105"]
    both = bench.edit(RECIPE, SERVED, "args: {x: inputt, out: outt}")
    assert codes(both.findings()) == ["KA105", "KA105"]
    fewer = bench.edit(RECIPE, SERVED, "args: {xx: input}")
    told = {f.code: f.message for f in fewer.findings()}
    assert sorted(told) == ["KA005", "KA105"]
    assert "upstream passes 'out', which is neither" in told["KA105"]


UNFIT = [
    (RECIPE, "silu_and_mul\n    style: function", "silu_kernel\n    style: function"),
    (MAP, "target: sglang.srt.utils.common.set_affinity", "target: sglang.kernels.ops.activation.silu_kernel"),
    (RECIPE, "ops.activation.silu_and_mul\n    style: function\n    args: {x: input", "ops.activation.silu_and_mul\n    style: oot_forward\n    args: {x: inputt"),
]  # fmt: skip


@pytest.mark.parametrize(("file", "old", "new"), UNFIT)
def test_of_what_does_not_fit_the_parameters_are_not_compared(
    bench: Bench, file: str, old: str, new: str
) -> None:
    only(bench.edit(file, old, new).findings(), "KA104")


def test_where_another_way_is_only_advised_the_parameters_are_compared(bench: Bench) -> None:
    changed = bench.edit(RECIPE, "ops.activation.silu_and_mul", "ops.activation.gelu_and_mul")
    changed = changed.edit(ACTIVATION, "gelu_and_mul(input, out", "gelu_and_mul(input, limit, out")
    assert codes(changed.findings()) == ["KA104", "KA114"]


@pytest.mark.parametrize(
    ("signature", "ignores", "suggestion"),
    [
        ("input, limit, out=None, alpha=1.0", "{}", "map it in `args`, or `ignores: {limit: $any, alpha: 1.0}`"),
        ("input, limit=None, out=None, alpha=1.0", "{gone: 1}", "`ignores: {limit: null, alpha: 1.0}`"),
        ("input, limit, out, beta, alpha=1.0", "{alpha: 2.0}", "map them in `args`, or `ignores: {alpha: 1.0, limit: $any, beta: $any}`"),
    ],
)  # fmt: skip
def test_all_that_is_said_of_one_place_suggests_one_edit(
    bench: Bench, signature: str, ignores: str, suggestion: str
) -> None:
    """Edits of one key that know nothing of each other undo each other."""
    stated = bench.edit(RECIPE, SERVED, f"{SERVED}\n    ignores: {ignores}")
    changed = stated.edit(ACTIVATION, SILU, f"def silu_and_mul({signature})")
    found = changed.findings()
    assert {f.code for f in found} <= {"KA105", "KA114"} and len(found) > 1
    assert {(f.suggestion or "").removeprefix("drop it: ") for f in found} == {suggestion}
    edit = suggestion.rpartition(", or ")[2].strip("`")
    mended = changed.edit(RECIPE, f"ignores: {ignores}", edit)
    assert codes(mended.findings()) == []

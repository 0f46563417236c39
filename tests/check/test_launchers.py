"""KA104 and KA105 for `style: launcher`, which stands in for a Triton kernel."""

from __future__ import annotations

import pytest

from kunlun_adapt.diagnostics import Severity
from tests.check.bench import RECIPE, Bench
from tests.check.said import codes, only

SILU = """\
  - target: sglang.kernels.ops.activation.silu_and_mul
    style: function
    args: {x: input, out: out}
"""
KERNEL = "sglang.kernels.ops.activation.silu_kernel"
FORWARD = "sglang.srt.layers.activation.SiluAndMul"


def bind(bench: Bench, target: str, args: str = "{x: x, out: out}", how: str = "launcher") -> Bench:
    """Bind the operator to another target, as `how`."""
    new = f"  - target: {target}\n    style: {how}\n    args: {args}\n"
    return bench.edit(RECIPE, SILU, new)


def test_a_launcher_stands_in_for_a_kernel(bench: Bench) -> None:
    found = bind(bench, KERNEL).findings()
    assert [f for f in found if f.severity is not Severity.INFO] == []


def test_a_launcher_may_read_the_grid(bench: Bench) -> None:
    launched = bind(bench, KERNEL, "{x: x, out: out, grid: $grid}")
    with_grid = launched.edit(RECIPE, "  out: ", '  grid: "object | None"\n  out: ')
    assert "KA105" not in codes(with_grid.findings())


def test_only_a_launcher_has_a_grid(bench: Bench) -> None:
    target = "sglang.kernels.ops.activation.silu_and_mul"
    called = bind(bench, target, "{x: input, out: $grid}", how="function")
    found = [f for f in called.findings() if "$grid" in f.message]
    assert "which only a launcher's call has" in only(found, "KA105").message


@pytest.mark.parametrize(
    ("target", "args", "tip"),
    [
        ("sglang.kernels.ops.activation.silu_and_mul", "{x: input, out: out}", "style: function"),
        (FORWARD, "{x: x}", "name the Triton kernel"),
    ],
)
def test_a_launcher_is_refused_where_nothing_is_launched(
    bench: Bench, target: str, args: str, tip: str
) -> None:
    changed = bind(bench, target, args)
    if target == FORWARD:
        second = f"  - target: {FORWARD}\n    style: oot_forward\n    args: {{x: x}}\n"
        changed = changed.edit(RECIPE, second, "")
    found = only([f for f in changed.findings() if f.code == "KA104"], "KA104")
    assert "launcher" in found.message
    assert tip in (found.suggestion or "")


def test_a_function_on_a_kernel_is_told_of_launchers(bench: Bench) -> None:
    found = [f for f in bind(bench, KERNEL, how="function").findings() if f.code == "KA104"]
    assert "style: launcher" in (only(found, "KA104").suggestion or "")

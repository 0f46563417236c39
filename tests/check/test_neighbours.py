"""What is found beside a target: what callers pass, and what ours does the work of."""

from __future__ import annotations

from typing import Any

import pytest

from kunlun_adapt.check.neighbours import MANY, neighbour_changes, neighbours
from kunlun_adapt.evolve.lock import lock_for, usage_for
from kunlun_adapt.upstream import Lock
from tests.check.bench import MAP, RECIPE, Bench
from tests.check.examples import COMMON
from tests.check.examples_usage import CALL, ENGINE, used
from tests.check.said import only
from tests.check.test_usage import context

OPS = "sglang/kernels/ops/activation.py"
OPERATOR = "silu_and_mul/silu_and_mul"


def launching(bench: Bench) -> Bench:
    """The operator's function launches a kernel and uses a helper beside it, and one elsewhere."""
    changed = bench.edit(
        OPS,
        "def silu_and_mul(input, out=None):\n            return input\n",
        "def scale(x):\n            return x * 2\n\n"
        "        def silu_and_mul(input, out=None):\n"
        "            from sglang.srt.elsewhere import far, far_kernel\n"
        "            silu_kernel[(1,)](scale(input), out)\n"
        "            far_kernel[(1,)](far(input))\n"
        "            return input\n",
    )
    return changed.add(
        "sglang/srt/elsewhere.py",
        "import triton\n\n\ndef far(x):\n    return x\n\n\n"
        "@triton.jit\ndef far_kernel(x):\n    pass\n",
    )


def found(bench: Bench) -> dict[str, Any]:
    return neighbours(context(bench))


def locked(bench: Bench, held: Lock | None = None) -> Lock:
    catalog, resolver = bench.catalog(), bench.resolver()
    fresh, _ = lock_for(catalog, resolver)
    merged = (held or Lock()).replaced(fresh)
    return merged.with_usage(resolver.version, usage_for(catalog, resolver, merged, None))


def test_a_caller_is_kept_with_what_it_passes_for_our_parameters(bench: Bench) -> None:
    row = found(used(bench))["affinity"]
    (caller,) = row["callers"]
    assert caller.startswith("sglang.") and row["callers"][caller] == [{"gpu_id": "0"}]
    changed = used(bench).edit(ENGINE, CALL, "set_affinity(tp_size=8, gpu_id=rank   +  1)")
    assert found(changed)["affinity"]["callers"][caller] == [{"gpu_id": "rank + 1"}]


def test_a_long_expression_is_cut_and_still_told_apart(bench: Bench) -> None:
    texts = []
    for last in ("1", "2"):
        call = f"set_affinity({' + '.join(['number'] * 30)} + {last}, 8)"
        (calls,) = found(used(bench).edit(ENGINE, CALL, call))["affinity"]["callers"].values()
        texts.append(calls[0]["gpu_id"])
    assert texts[0] != texts[1] and all(len(text) < 120 for text in texts)


def test_what_everybody_calls_has_no_callers_of_note(bench: Bench) -> None:
    calls = "".join(f"def f{n}():\n    set_affinity({n}, 8)\n\n\n" for n in range(MANY + 1))
    changed = bench.add(
        "sglang/srt/many.py", f"from sglang.srt.utils.common import set_affinity\n\n\n{calls}"
    )
    assert "callers" not in found(changed)["affinity"]


def test_what_a_replaced_function_launches_and_calls_beside_it_is_kept(bench: Bench) -> None:
    row = found(launching(bench))[OPERATOR]
    assert set(row["callees"]) == {
        "sglang.kernels.ops.activation.scale",
        "sglang.kernels.ops.activation.silu_kernel",
        "sglang.srt.elsewhere.far_kernel",
    }


def test_what_runs_around_a_function_leaves_it_its_parts(bench: Bench) -> None:
    calling = used(bench).edit(COMMON, "return gpu_id", "return helper(gpu_id)")
    calling = calling.add(COMMON, "\ndef helper(x):\n    return x\n")
    assert set(found(calling)["affinity"]["callees"]) == {"sglang.srt.utils.common.helper"}
    around = calling.edit(MAP, "type: replace", "type: around")
    assert "callees" not in found(around)["affinity"] and found(around)["affinity"]["callers"]


def test_what_is_planned_has_no_neighbours(bench: Bench) -> None:
    planned = used(bench).edit(MAP, "    type: replace", "    status: planned\n    type: replace")
    assert "affinity" not in found(planned)


CALLS: dict[str, Any] = {"stated": "s", "callers": {"m.f": [{"x": "a"}]}, "callees": {"m.g": "1"}}


@pytest.mark.parametrize(
    ("now", "says"),
    [
        ({}, []),
        ({"callers": {"m.f": [{"x": "b"}]}}, ["m.f passes x=b, was a"]),
        ({"callers": {"m.f": [{"x": "a", "y": "c"}]}}, ["m.f passes y=c, was nothing"]),
        ({"callers": {"m.f": [{}]}}, ["m.f passes no x, was a"]),
        ({"callers": {}}, ["m.f no longer calls it"]),
        ({"callers": {"n.f": [{"x": "a"}]}}, []),
        (
            {"callers": {"m.f": [{"x": "a"}], "m.h": [{"x": "a"}]}},
            ["m.h calls it too"],
        ),
        ({"callees": {"m.g": "2"}}, ["the body of m.g, which it calls, changed"]),
        ({"callees": {"n.g": "1"}}, []),
        ({"callees": {}}, ["it no longer calls m.g"]),
        ({"callees": {"m.g": "1", "m.k": "3"}}, ["it now calls m.k"]),
        # An edit of the documents maps y too: upstream has not changed.
        ({"stated": "t", "callers": {"m.f": [{"x": "a", "y": "c"}]}}, []),
        ({"stated": "t", "callers": {"m.f": [{"x": "b", "y": "c"}]}}, ["m.f passes x=b, was a"]),
    ],
)
def test_how_neighbours_differ(now: dict[str, Any], says: list[str]) -> None:
    assert neighbour_changes(CALLS, {**CALLS, **now}) == says


def test_neighbours_that_were_not_looked_for_are_not_compared() -> None:
    assert neighbour_changes({"stated": "s"}, CALLS) == neighbour_changes(CALLS, {}) == []


def test_a_neighbour_that_changed_since_the_lock_is_told(bench: Bench) -> None:
    lock = locked(used(bench).version("0.5.18"))
    assert [f for f in used(bench).findings(lock=lock) if f.code == "KA116"] == []
    changed = used(bench).edit(ENGINE, CALL, "set_affinity(1, 8)")
    told = only([f for f in changed.findings(lock=lock) if f.code == "KA116"], "KA116")
    assert "passes gpu_id=1, was 0" in told.message and "when 0.5.18 was locked" in told.message
    assert told.binding == "affinity"
    # Once it is locked again, it is what it is.
    again = locked(changed, lock)
    assert [f for f in changed.findings(lock=again) if f.code == "KA116"] == []


def test_a_kernel_that_computes_otherwise_is_told(bench: Bench) -> None:
    before = launching(bench)
    lock = locked(before.version("0.5.18"))
    changed = before.edit(
        OPS,
        "def silu_kernel(x, out):\n            pass",
        "def silu_kernel(x, out):\n            x = 1",
    )
    told = only([f for f in changed.findings(lock=lock) if f.code == "KA116"], "KA116")
    assert "the body of sglang.kernels.ops.activation.silu_kernel, which it calls" in told.message
    assert told.binding == OPERATOR and str(told.position) == before.place(
        RECIPE, "sglang.kernels.ops.activation.silu_and_mul"
    )

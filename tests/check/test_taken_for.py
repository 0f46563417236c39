"""KA102 takes no place of another kind, and no short body that is many another one's too."""

from __future__ import annotations

import textwrap

import pytest

from kunlun_adapt.diagnostics import Finding
from kunlun_adapt.upstream import Lock
from tests.check.bench import MAP, Bench
from tests.check.examples import COMMON, lock_of
from tests.check.said import only
from tests.check.test_alike import looks_for

GONE = "sglang.srt.stores.gone.place"
HANDED = "gpu_id, tp_size, nnodes=1"
SHORT = "    return gpu_id\n"
LONG = (
    "    total = gpu_id * 2 + tp_size\n"
    "    for node in range(nnodes):\n"
    "        total += node * 7 if node % 2 else 11 - node\n"
)


def said(bench: Bench, lock: Lock | None = None) -> Finding:
    found = [f for f in bench.findings(lock=lock) if f.code in ("KA101", "KA102")]
    return only(found, found[0].code if found else "KA102")


@pytest.mark.parametrize(
    "text", ["place = None\n", "class place:\n    pass\n", "from sglang.srt import place\n"]
)
def test_what_is_no_function_is_not_the_function_of_an_operator(bench: Bench, text: str) -> None:
    target = "target: sglang.kernels.ops.activation.silu_and_mul\n"
    lost = bench.edit("operator_recipes/activation.yaml", target, f"target: {GONE}\n")
    moved = lost.add("sglang/srt/stores/keys.py", "def place(input, out=None):\n    return 1\n")
    assert said(moved).code == "KA102"
    other = lost.add("sglang/srt/stores/keys.py", text).add("sglang/srt/place.py", "")
    assert said(other).code == "KA101"


def test_a_value_is_not_the_function_that_a_hook_is_on(bench: Bench) -> None:
    lost = looks_for(bench, GONE)
    assert said(lost.add("sglang/srt/stores/keys.py", "place = 3\n")).code == "KA101"
    there = lost.add("sglang/srt/stores/keys.py", f"def place({HANDED}):\n    return 1\n")
    assert said(there).code == "KA102"
    both = there.add("sglang/srt/stores/gone2.py", "place = 3\n")
    assert "sglang.srt.stores.keys.place" in said(both).message


def test_what_it_was_is_in_the_lock(bench: Bench) -> None:
    """A hook of type `set` may be on anything; the lock knows that this one was on a list."""
    value = bench.edit(MAP, "    type: extend\n", "    type: set\n")
    lock = lock_of(value)
    gone = value.edit(COMMON, 'CHOICES = ["triton"]', "pass")
    function = gone.add("sglang/srt/utils/other.py", "def CHOICES():\n    pass\n")
    assert said(function, lock).code == "KA101"
    assert said(function).code == "KA102"  # without the lock nobody can tell
    listed = gone.add("sglang/srt/utils/other.py", "CHOICES = []\n")
    assert said(listed, lock).code == "KA102"


def moved(bench: Bench, body: str) -> tuple[Bench, Lock]:
    """The bench without its hooked function, and the lock that knows the body that it had."""
    before = bench.edit(COMMON, indented(SHORT), indented(body))
    gone = before.edit(COMMON, "def set_affinity(", "def other(")
    return gone.edit(COMMON, indented(body), indented("    return 0\n")), lock_of(before)


def indented(body: str) -> str:
    return textwrap.indent(body, " " * 8)


@pytest.mark.parametrize(("body", "code"), [(SHORT, "KA101"), (LONG, "KA102")])
def test_a_short_body_in_another_part_is_the_same_by_chance(
    bench: Bench, body: str, code: str
) -> None:
    gone, lock = moved(bench, body)
    place = "sglang/multimodal_gen/runtime/place.py"
    assert said(gone.add(place, f"def set_affinity({HANDED}):\n{body}"), lock).code == code


def test_two_copies_are_no_move(bench: Bench) -> None:
    gone, lock = moved(bench, LONG)
    once = gone.add("sglang/srt/one.py", f"def set_affinity({HANDED}):\n{LONG}")
    assert said(once, lock).code == "KA102"
    twice = once.add("sglang/srt/two.py", f"def set_affinity({HANDED}):\n{LONG}")
    assert said(twice, lock).code == "KA101"

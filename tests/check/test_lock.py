# ruff: noqa: E501 -- the YAML lines of the tables stay whole
"""KA106 and KA107: what the lock verified."""

from __future__ import annotations

import pytest

from kunlun_adapt.upstream import Lock
from tests.check.bench import MAP, Bench
from tests.check.examples import ACTIVATION, COMMON, INTERFACE, lock_of
from tests.check.said import codes, only

DRIFT = [
    (COMMON, "return gpu_id", "return gpu_id + 1", "its body changed"),
    (COMMON, "tp_size, nnodes=1)", "tp_size=8, nnodes=1)", "signature (gpu_id, tp_size=8, nnodes=1), was (gpu_id, tp_size, nnodes=1)"),
    (COMMON, 'CHOICES = ["triton"]', 'CHOICES = ["other"]', "its body changed"),
    (INTERFACE, 'return "native"', 'return "oot"', "its body changed"),
    (INTERFACE, "graph_capture: bool = False", "graph_capture: bool = True", "its body changed"),
    ("sglang/srt/layers/activation.py", "def forward_native(self, x):\n                return x",
     "def forward_native(self, x):\n                return x * 2", "its body changed"),
]  # fmt: skip


@pytest.mark.parametrize(("file", "old", "new", "says"), DRIFT)
def test_a_change_since_the_lock(bench: Bench, file: str, old: str, new: str, says: str) -> None:
    lock = lock_of(bench)
    findings = bench.edit(file, old, new).findings(lock=lock)
    assert findings and set(codes(findings)) == {"KA106"}
    assert all(says in f.message for f in findings)


def test_a_symbol_that_moved_behind_a_reexport(bench: Bench) -> None:
    lock = lock_of(bench)
    changed = bench.edit(ACTIVATION, "def silu_and_mul(input, out=None):\n            return input",
                         "from sglang.kernels.ops.silu import silu_and_mul")  # fmt: skip
    changed = changed.add(
        "sglang/kernels/ops/silu.py", "def silu_and_mul(input, out=None):\n    return input\n"
    )
    findings = changed.findings(lock=lock)
    # KA108 says that the definition should be named.
    assert codes(findings) == ["KA106", "KA108"]
    found = findings[0]
    assert "defined in sglang.kernels.ops.silu.silu_and_mul, was" in found.message


def test_comments_and_lines_are_no_change(bench: Bench) -> None:
    lock = lock_of(bench)
    changed = bench.edit(COMMON, "return gpu_id", "# the card\n            return gpu_id")
    assert codes(changed.findings(lock=lock)) == []


def test_a_release_that_is_not_locked_is_said_once(bench: Bench) -> None:
    found = only(bench.version("0.5.20").findings(lock=lock_of(bench)), "KA107")
    assert str(found.position) == bench.place(MAP, '">=0.5.17,<0.5.24"')
    assert found.suggestion == "run kunlun-adapt lock --sglang 0.5.20"


def test_a_release_that_is_not_claimed_need_not_be_locked(bench: Bench) -> None:
    lock = lock_of(bench)
    assert codes(bench.version("0.5.30").findings(lock=lock)) == ["KA009"]
    assert codes(bench.version("0.5.30").findings(lock=lock, beyond=True)) == []


def test_without_a_lock_nothing_is_asked(bench: Bench) -> None:
    assert codes(bench.findings(lock=None)) == []
    assert codes(bench.findings(lock=Lock())) == ["KA107"]


def test_what_does_not_claim_the_release_need_not_be_locked(bench: Bench) -> None:
    """A hook for a later release is checked beyond its claim, and the lock owes it nothing."""
    other = '{sglang: ">=0.5.20", target: sglang.srt.utils.common.ENABLED}'
    hook = f'  - id: more\n    why: a flag\n    type: set\n    value: true\n    at:\n      - {other}\n    excluded: [{{sglang: "<0.5.20", why: it is not read there}}]\n'
    changed = bench.edit(MAP, "  - id: choices\n", f"{hook}  - id: choices\n")
    assert codes(changed.findings(lock=lock_of(bench))) == []
    assert "KA107" not in codes(changed.findings(lock=lock_of(bench), beyond=True))
    claimed = changed.edit(
        MAP,
        '>=0.5.20", target: sglang.srt.utils.common.E',
        '>=0.5.19", target: sglang.srt.utils.common.E',
    ).edit(MAP, '    excluded: [{sglang: "<0.5.20", why: it is not read there}]\n', "")
    assert codes(claimed.findings(lock=lock_of(bench))) == ["KA107"]

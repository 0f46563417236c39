# ruff: noqa: E501 -- the YAML lines of the tables stay whole
"""Examples of findings about bindings that meet."""

from __future__ import annotations

from tests.check.bench import MAP, Bench
from tests.check.examples import COMMON, Example

AFFINITY = "sglang.srt.utils.common.set_affinity"
HOW = "args: {gpu_id: gpu_id}, ignores: {tp_size: $any, nnodes: 1}"
PINNED = f"{AFFINITY}, {HOW}}}\n    served"
RUNNER = "sglang.srt.runner.GraphRunner"


def hooked(bench: Bench, id: str, type: str, target: str, *more: str) -> Bench:
    """Add a hook in front of the map's; `more` are further lines of it."""
    lines = [
        f"  - id: {id}",
        "    why: it does what upstream's cannot",
        f"    type: {type}",
        '    impl: "our_impls:set_affinity"',
        *(f"    {line}" for line in more),
        "    at:",
        f"      - {{target: {target}}}",
    ]
    return bench.edit(MAP, "hooks:\n", "\n".join(["hooks:", *lines, ""]))


def over_a_replaced_class(bench: Bench) -> Bench:
    changed = hooked(
        bench, "replay", "after", f"{RUNNER}.replay, ignores: {{batch: $any, skip: $any}}"
    )
    changed = hooked(changed, "runner", "replace", RUNNER)
    return changed.edit(MAP, '"our_impls:set_affinity"\n    at:\n      - {target: sglang.srt.runner.GraphRunner}',
                        '"our_impls:Pool"\n    at:\n      - {target: sglang.srt.runner.GraphRunner}')  # fmt: skip


def group(bench: Bench) -> Bench:
    changed = bench.add(
        COMMON, "\n        def pin_all(gpu_id):\n            set_affinity(gpu_id, 1)\n"
    )
    return hooked(
        changed, "pin-all", "replace", "sglang.srt.utils.common.pin_all, args: {gpu_id: gpu_id}"
    )


CONFLICT = 'conflicts:\n  - {between: [affinity, choices], keep: affinity, decision: one of them, recorded: "2026-01-01"}\n'


EXAMPLES: dict[str, Example] = {
    "KA401": Example(
        lambda b: hooked(b, "pinning", "replace", f"{AFFINITY}, {HOW}"),
        MAP, PINNED, suggests="{between: [pinning, affinity]",
    ),
    "KA402": Example(
        over_a_replaced_class,
        MAP, f"{RUNNER}.replay", suggests="move it into the class of runner",
    ),
    "KA403": Example(
        lambda b: hooked(b, "timing", "around", f"{AFFINITY}, {HOW}"),
        MAP, PINNED, suggests="give timing `runs_after: [affinity]`",
    ),
    "KA404": Example(
        group,
        MAP, PINNED, suggests="`watch: [sglang.srt.utils.common.pin_all]`",
    ),
    "KA405": Example(
        lambda b: hooked(b, "silu", "replace",
                         "sglang.kernels.ops.activation.silu_and_mul, args: {x: input, out: out}"),
        MAP, "sglang.kernels.ops.activation.silu_and_mul, args",
        suggests="{between: [silu_and_mul/silu_and_mul, silu]",
    ),
    "KA406": Example(
        lambda b: b.edit(MAP, "hooks:\n", f"{CONFLICT}hooks:\n"),
        MAP, "choices], keep", suggests="leave choices out where affinity holds",
    ),
    "KA407": Example(
        lambda b: b.edit("sglang/srt/managers/scheduler.py", "load_plugins()", "pass"),
        MAP, "sglang.srt.managers.scheduler.run_scheduler_process",
        suggests="add `loads_plugins: false`",
    ),
}  # fmt: skip

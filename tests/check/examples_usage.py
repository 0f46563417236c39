# ruff: noqa: E501 -- the YAML lines of the tables stay whole
"""Examples of findings about upstream's symbols, by their use."""

from __future__ import annotations

from dataclasses import replace

from tests.check.bench import MAP, RECIPE, Bench
from tests.check.examples import ACTIVATION, AFFINITY, COMMON, Example

ENGINE = "sglang/srt/engine.py"
CALL = "set_affinity(0, 8)"
SCHEDULER = "sglang/srt/managers/scheduler.py"


def used(bench: Bench) -> Bench:
    """The bench with a module that uses what is bound, and an ear for what is said of uses."""
    text = f"""\
        from sglang.kernels.ops.activation import silu_and_mul
        from sglang.srt.layers.activation import SiluAndMul
        from sglang.srt.utils.common import CHOICES, set_affinity

        def run(backend):
            {CALL}
            assert backend in CHOICES
            return SiluAndMul()(silu_and_mul(backend))
        """
    return replace(bench, used=True).add(ENGINE, text)


def loaded(bench: Bench, module: str) -> Bench:
    """The bench with a module that the scheduler's own imports."""
    return bench.edit(SCHEDULER, "def run_s", f"import {module}\n\ndef run_s")


def hook(type: str, target: str, rest: str) -> tuple[str, str]:
    """The edit that puts a third hook into the map."""
    text = f"hooks:\n  - id: third\n    why: a third one\n    type: {type}\n    {rest}\n"
    return "hooks:\n", f"{text}    at:\n      - {{target: {target}}}\n"


def launcher(bench: Bench) -> Bench:
    """The used bench with a kernel that is to be launched in our way some day."""
    return used(bench).edit(RECIPE, "derive:", """\
  - target: sglang.kernels.ops.activation.silu_kernel
    style: launcher
    status: planned
    args: {x: x, out: out}
derive:""")  # fmt: skip


NESTED = """\

        @triton.jit
        def outer_kernel(x, out):
            silu_kernel(x, out)
        """

EXAMPLES: dict[str, Example] = {
    "KA115": Example(
        lambda b: used(b).edit(ENGINE, CALL, "set_affinity(0, 8, 2)"),
        MAP, "sglang.srt.utils.common.set_affinity", suggests="`ignores: {tp_size: $any, nnodes: $any}`",
    ),
    "KA117": Example(
        lambda b: loaded(used(b), "sglang.srt.engine")
        .add(ENGINE, "\nfrom sglang.srt.utils.common import ENABLED\n\ndef enabled():\n    return ENABLED\n")
        .edit(MAP, *hook("set", "sglang.srt.utils.common.ENABLED", "value: false")),
        MAP, "sglang.srt.utils.common.ENABLED", suggests="`repair: [sglang.srt.engine.ENABLED]`",
    ),
    "KA118": Example(
        lambda b: used(b).add(COMMON, '\nPINNING = {"numa": set_affinity}\n'),
        MAP, "sglang.srt.utils.common.set_affinity", suggests="`repair: [sglang.srt.utils.common.PINNING]`",
    ),
    "KA119": Example(
        lambda b: used(b).edit(ENGINE, CALL, "pass"),
        MAP, "sglang.srt.utils.common.set_affinity", suggests="bind what upstream uses instead",
    ),
    "KA120": Example(
        lambda b: launcher(b).add(ACTIVATION, NESTED),
        RECIPE, "sglang.kernels.ops.activation.silu_kernel", suggests="launches: outer_kernel",
        beside=("KA313",),
    ),
    "KA121": Example(
        lambda b: used(b).edit(MAP, AFFINITY, AFFINITY.replace("utils.common", "server_args"))
        .edit(MAP, "    why: pin each", '    excluded: [{sglang: ">=0.5.19", why: it is gone}]\n    why: pin each'),
        MAP, "sglang.srt.server_args.set_affinity",
        suggests='- {sglang: ">=0.5.19", target: sglang.srt.utils.common.set_affinity, args: {gpu_id: gpu_id}, ',
    ),
}  # fmt: skip

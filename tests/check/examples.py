"""For each code one change to the bench that brings it about; the pages show what is then said."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kunlun_adapt.diagnostics import Finding
from kunlun_adapt.upstream import Lock, lock_release
from tests.check.bench import IMPLS, MAP, RECIPE, Bench

ACTIVATION = "sglang/kernels/ops/activation.py"
COMMON = "sglang/srt/utils/common.py"
INTERFACE = "sglang/srt/platforms/interface.py"


def lock_of(bench: Bench) -> Lock:
    """Lock the bench's release as it is: every target and the classes of the interface."""
    targets = (
        "sglang.srt.utils.common.set_affinity",
        "sglang.srt.utils.common.CHOICES",
        "sglang.kernels.ops.activation.silu_and_mul",
        "sglang.srt.layers.activation.SiluAndMul",
        "sglang.srt.layers.activation.SiluAndMul.forward_native",
        "sglang.srt.runner.GraphRunner",
        "sglang.srt.managers.scheduler.run_scheduler_process",
        "sglang.srt.platforms.device_mixin.PlatformEnum.OOT",
    )
    classes = (
        "sglang.srt.platforms.interface.SRTPlatform",
        "sglang.srt.platforms.interface.PlatformCapabilities",
    )
    lock, missing = lock_release(bench.resolver(), targets, classes=classes)
    assert not missing
    return lock


@dataclass(frozen=True)
class Example:
    """A change, the finding's place in the changed workspace, and words of its suggestion."""

    change: Callable[[Bench], Bench]
    file: str
    needle: str
    skip: int = 0
    suggests: str | None = None
    locked: bool = False
    beside: tuple[str, ...] = ()
    """Codes that the same change brings about as well."""

    def findings(self, bench: Bench) -> tuple[Finding, ...]:
        """Return what is said of the changed bench."""
        lock = lock_of(bench) if self.locked else None
        return self.change(bench).findings(lock=lock)

    def place(self, bench: Bench) -> str:
        return self.change(bench).place(self.file, self.needle, self.skip)


AFFINITY = 'sglang: ">=0.5.18", target: sglang.srt.utils.common.set_affinity'
TARGET = "target: sglang.kernels.ops.activation.silu_and_mul"
WHEN = 'rows: "<= 8192"'

EXAMPLES: dict[str, Example] = {
    "KA001": Example(
        lambda b: b.edit(MAP, "name: kunlun\nsglang:", "name: @kunlun\nsglang:"),
        MAP, "@kunlun\n", suggests="put the text in quotes",
    ),
    "KA002": Example(
        lambda b: b.edit(MAP, "triton: false", "triton: 3"), MAP, "triton: 3", 8
    ),
    "KA003": Example(
        lambda b: b.edit(RECIPE, "fallback: true", "falback: true"),
        RECIPE, "falback", suggests="did you mean 'fallback'?",
    ),
    "KA004": Example(
        lambda b: b.edit(MAP, "- id: choices", "- id: affinity"),
        MAP, "affinity\n    why: upstream refuses", suggests="rename or remove",
    ),
    "KA005": Example(
        lambda b: b.edit(RECIPE, "mutates: [out]", "mutates: [oot]"),
        RECIPE, "oot]", suggests="did you mean out?",
    ),
    "KA006": Example(
        lambda b: b.edit(MAP, "- {target: sglang.srt.utils.common.CHOICES}", """\
- {target: sglang.srt.utils.common.CHOICES}
      - {sglang: ">=0.5.20,<0.5.17", target: sglang.srt.utils.common.CHOICES}"""),
        MAP, '">=0.5.20,<0.5.17"',
    ),
    "KA007": Example(
        lambda b: b.edit(MAP, '{sglang: "<0.5.18", target', '{sglang: "<0.5.19", target'),
        MAP, '">=0.5.18", target', suggests='`sglang: "<0.5.18"`',
    ),
    "KA008": Example(
        lambda b: b.edit(MAP, AFFINITY, AFFINITY.replace(">=0.5.18", ">=0.5.20")),
        MAP, "at:\n      - {sglang", suggests="widen its range to hold for 0.5.19",
    ),
    "KA009": Example(
        lambda b: b.edit(MAP, "<0.5.24", "<0.5.19"),
        MAP, '">=0.5.17,<0.5.19"', suggests="--beyond-claims",
    ),
    "KA010": Example(
        lambda b: b.edit(MAP, ", why: upstream calls it on cards only", ""),
        MAP, "{simulator: false}\n  - id", suggests='why: "…"',
    ),
    "KA101": Example(
        lambda b: b.edit(MAP, AFFINITY, AFFINITY.replace("set_affinity", "set_afinity")),
        MAP, "sglang.srt.utils.common.set_afinity",
        suggests="did you mean sglang.srt.utils.common.set_affinity?",
    ),
    "KA102": Example(
        lambda b: b.edit(MAP, "target: sglang.srt.utils.common.CHOICES",
                         "target: sglang.srt.server_args.CHOICES"),
        MAP, "sglang.srt.server_args.CHOICES",
        suggests='{sglang: ">=0.5.19", target: sglang.srt.utils.common.CHOICES}',
    ),
    "KA103": Example(
        lambda b: b.edit(MAP, AFFINITY, AFFINITY.replace("common.set_affinity", "old.vanished")),
        MAP, "sglang.srt.utils.old.vanished",
    ),
    "KA105": Example(
        lambda b: b.edit(ACTIVATION, "def silu_and_mul(input, out=None)",
                         "def silu_and_mul(input, out=None, *, limit=None)"),
        RECIPE, "sglang.kernels.ops.activation.silu_and_mul", suggests="`ignores: {limit: null}`",
    ),
    "KA106": Example(
        lambda b: b.edit(COMMON, "return gpu_id", "return gpu_id + 1"),
        MAP, "sglang.srt.utils.common.set_affinity", suggests="kunlun-adapt lock", locked=True,
    ),
    "KA107": Example(
        lambda b: b.add(COMMON, "def other(gpu_id, tp_size, nnodes=1): pass\n")
        .edit(MAP, AFFINITY, AFFINITY.replace("set_affinity", "other")),
        MAP, "sglang.srt.utils.common.other", suggests="kunlun-adapt lock", locked=True,
    ),
    "KA201": Example(
        lambda b: b.edit(INTERFACE, "def get_graph_runner_cls", "def get_device_graph_runner_cls"),
        MAP, "get_graph_runner_cls",
        suggests='interface.graph_runner: add {sglang: ">=0.5.19", '
        "method: get_device_graph_runner_cls}",
    ),
    "KA202": Example(
        lambda b: b.edit(MAP, "- {method: get_graph_runner_cls}",
                         '- {sglang: "<0.5.19", method: get_graph_runner_cls}'),
        MAP, "graph_runner: \"sglang",
        suggests='{sglang: ">=0.5.19", method: get_graph_runner_cls}',
    ),
    "KA203": Example(
        lambda b: b.edit(INTERFACE, "supports_triton: bool = False",
                         "supports_triton: bool = False\n            pynccl: bool = False"),
        MAP, "capabilities:\n  graph", suggests="`capabilities: {pynccl: true}`",
    ),
    "KA204": Example(
        lambda b: b.edit(INTERFACE, "def supports_mamba", "def get_allocator(self):\n"
                         "                raise NotImplementedError\n\n"
                         "            def supports_mamba"),
        MAP, "sglang.srt.platforms.interface.SRTPlatform", suggests="{member: get_allocator,",
    ),
    "KA205": Example(
        lambda b: b.drop("sglang/srt/platforms/").drop("sglang/srt/plugins/"),
        MAP, '">=0.5.17,<0.5.24"', suggests="releases that have sglang.srt.plugins",
    ),
    "KA206": Example(
        lambda b: b.edit(MAP, "left_at_default:\n",
                         "left_at_default:\n  - {member: graph_runner, why: upstream picks it}\n"),
        MAP, "graph_runner, why", suggests="remove this entry or the key",
    ),
    "KA301": Example(
        lambda b: b.edit(RECIPE, "our_impls:swiglu", "our_impls:swigl"),
        RECIPE, '"our_impls:swigl"', suggests="did you mean our_impls:swiglu?",
    ),
    "KA302": Example(
        lambda b: b.edit(IMPLS, "def swiglu(x, out, *, turn)", "def swiglu(out, x, *, turn)"),
        RECIPE, '"our_impls:swiglu"', suggests="`def swiglu(x, out, *, turn): …`",
    ),
    "KA303": Example(
        lambda b: b.edit(RECIPE, "fallback: true", 'fallback: true\n    when: {rows: "<= 8192"}'),
        RECIPE, "kernels:", suggests="widen `when` of the golden tier",
    ),
    "KA304": Example(
        lambda b: b.edit(RECIPE, WHEN, 'row: "<= 8192"'),
        RECIPE, 'row: "<=', suggests="did you mean rows?",
    ),
    "KA305": Example(
        lambda b: b.edit(RECIPE, WHEN, 'rows: "< 0"'),
        RECIPE, "swiglu\n", suggests="remove it",
    ),
    "KA306": Example(
        lambda b: b.edit(RECIPE, "  - name: golden\n    fallback: true",
                         '  - name: plain\n    impl: "our_impls:silu_golden"\n    fallback: true'),
        RECIPE, "plain\n", suggests="`- {name: golden, fallback: true}`",
    ),
    "KA307": Example(
        lambda b: b.edit(RECIPE, "    fixed: {turn",
                         "    needs: [kunlun_ops.swigl]\n    fixed: {turn"),
        RECIPE, "kunlun_ops.swigl]", suggests="did you mean kunlun_ops.swiglu?",
    ),
    "KA308": Example(
        lambda b: b.edit(RECIPE, WHEN, "\n      ".join(
            [WHEN, *(f"env.KUNLUN_{i}: present" for i in range(16))])),
        RECIPE, "kernels:", suggests="read fewer things",
    ),
}  # fmt: skip

# ruff: noqa: E501 -- the YAML lines of the tables stay whole
"""Examples of findings about upstream's symbols, by their definitions."""

from __future__ import annotations

from tests.check.bench import MAP
from tests.check.examples import ACTIVATION, AFFINITY, COMMON, Example

RUNNER = "sglang/srt/runner.py"


def hook(type: str, target: str, how: str = "") -> tuple[str, str]:
    """The edit that puts a third hook into the map."""
    return (
        "hooks:\n",
        f"""\
hooks:
  - id: third
    why: a third one
    type: {type}
    impl: "our_impls:set_affinity"
    at:
      - {{target: {target}{how}}}
""",
    )


EXAMPLES: dict[str, Example] = {
    "KA104": Example(
        lambda b: b.edit(MAP, *hook("around", "sglang.srt.runner.GraphRunner")),
        MAP, "sglang.srt.runner.GraphRunner}", suggests="name a method of it",
    ),
    "KA108": Example(
        lambda b: b.add("sglang/srt/utils/__init__.py", "from sglang.srt.utils.common import set_affinity\n")
        .edit(MAP, AFFINITY, AFFINITY.replace("utils.common.set", "utils.set")),
        MAP, "sglang.srt.utils.set_affinity",
        suggests="name the definition: target: sglang.srt.utils.common.set_affinity",
    ),
    "KA109": Example(
        lambda b: b.edit(RUNNER, "class Base:\n", "class Base:\n            def load(self, model):\n                return model\n\n")
        .add(RUNNER, "\nRUNNER = GraphRunner()\n")
        .edit(MAP, *hook("around", "sglang.srt.runner.GraphRunner.load", ", args: {model: model}")),
        MAP, "sglang.srt.runner.GraphRunner.load",
        suggests="target: sglang.srt.runner.Base.load",
    ),
    "KA110": Example(
        lambda b: b.edit(MAP, *hook("around", "sglang.srt.runner")),
        MAP, "sglang.srt.runner}", suggests="name a function in it",
    ),
    "KA111": Example(
        lambda b: b.edit(MAP, *hook("around", "sglang.srt.runner.GraphRunner.size")),
        MAP, "sglang.srt.runner.GraphRunner.size", suggests="`type: set`",
    ),
    "KA112": Example(
        lambda b: b.add(COMMON, "_is_hip = is_hip()\nif _is_hip:\n    def free(size):\n        pass\n")
        .edit(MAP, *hook("around", "sglang.srt.utils.common.free", ", args: {size: size}")),
        MAP, "sglang.srt.utils.common.free", suggests="bind what upstream runs on this platform",
    ),
    "KA113": Example(
        lambda b: b.add(COMMON, "if version > 1:\n    def free(size):\n        pass\nelse:\n    def free(size, device):\n        pass\n")
        .edit(MAP, *hook("around", "sglang.srt.utils.common.free", ", args: {size: size}")),
        MAP, "sglang.srt.utils.common.free", suggests="accepts: [{code: KA113",
    ),
    "KA114": Example(
        lambda b: b.edit(ACTIVATION, "def silu_and_mul(input, out=None)",
                         "def silu_and_mul(input, limit=None, out=None)"),
        "operator_recipes/activation.yaml", "sglang.kernels.ops.activation.silu_and_mul",
        suggests="`ignores: {limit: null}`",
    ),
    "KA116": Example(
        lambda b: b.edit(MAP, "    value: [kunlun]\n", "    value: [kunlun]\n    watch: [sglang.srt.runner.GraphRunner]\n")
        .edit(RUNNER, "return seconds", "return seconds + 1"),
        MAP, "sglang.srt.runner.GraphRunner]", suggests="see whether choices still holds",
        locked=True, beside=("KA106",),
    ),
    "KA122": Example(
        lambda b: b.edit(MAP, *hook("replace", "sglang.srt.utils.common.ENABLED")),
        MAP, "sglang.srt.utils.common.ENABLED", suggests="use `type: set`",
    ),
}  # fmt: skip

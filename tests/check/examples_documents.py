"""Examples of findings about the documents as a whole."""

from __future__ import annotations

from tests.check.bench import MAP
from tests.check.examples import Example

STACK = """\
stack:
  - {sglang: "0.5.17", torch: "2.12.*", verified: simulator}
  - {sglang: "0.5.19", torch: "2.13.*", verified: simulator}
"""

PLANNED = """\
  - id: sizes
    why: the device counts its memory otherwise
    family: memory
    status: planned
    type: around
    at:
      - {target: sglang.srt.runner.GraphRunner.replay, args: {batch: batch}, ignores: [skip]}
"""

ACCEPTS = "    accepts: [{code: KA118, why: nobody keeps the list}]\n"

EXAMPLES: dict[str, Example] = {
    "KA011": Example(
        lambda b: b.edit(MAP, "stack:\n", STACK), MAP, '">=0.5.17,<0.5.24"',
        suggests="run kunlun-adapt lock --sglang 0.5.17 --sglang 0.5.18", locked=True,
    ),
    "KA012": Example(
        lambda b: b.edit(MAP, "    value: [kunlun]\n", ACCEPTS + "    value: [kunlun]\n"),
        MAP, "KA118", suggests="remove the entry, or give it the `sglang` range",
    ),
    "KA313": Example(
        lambda b: b.edit(MAP, "  - id: choices\n", f"{PLANNED}  - id: choices\n"),
        MAP, "sglang.srt.runner.GraphRunner.replay",
        suggests="kunlun-adapt list bindings",
    ),
}  # fmt: skip

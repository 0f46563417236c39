"""Examples of findings about operators and tiers."""

from __future__ import annotations

from tests.check.bench import IMPLS, RECIPE
from tests.check.examples import WHEN, Example

SECOND = """\
  - name: wide
    impl: "our_impls:swiglu"
    when:
      rows: ">= 8192"
    fixed: {turn: true}
  - name: golden
"""

EXAMPLES: dict[str, Example] = {
    "KA309": Example(
        lambda b: b.edit(RECIPE, 'golden: "our_impls:silu_golden"\n', "")
        .edit(RECIPE, "- name: golden\n", '- name: golden\n    impl: "our_impls:silu_golden"\n'),
        RECIPE, "silu_and_mul\nfamily", suggests='add `golden: "package.module:function"`',
    ),
    "KA310": Example(
        lambda b: b.edit(RECIPE, "  - name: golden\n", SECOND),
        RECIPE, '">= 8192"', suggests="let one of the two end where the other begins",
    ),
    "KA311": Example(
        lambda b: b.edit(RECIPE, WHEN, 'x.max: "<= 65504"'),
        RECIPE, "x.max", suggests="read x.dtype, .ndim",
    ),
    "KA312": Example(
        lambda b: b.edit(RECIPE, "    fixed: {turn", "    weights: packed\n    fixed: {turn"),
        RECIPE, "golden\n    fallback", suggests="give the fallback the layout `weights: packed`",
    ),
    "KA314": Example(
        lambda b: b.edit(IMPLS, "turn):\n    return x",
                         "turn):\n    scale = x.abs().max().item()\n    return x / scale"),
        RECIPE, '"our_impls:swiglu"', suggests="mark the tier or the operator `capture: eager`",
    ),
}  # fmt: skip

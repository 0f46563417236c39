# ruff: noqa: E501 -- the YAML lines of the tables stay whole
"""Examples of findings about the platform interface and the stack."""

from __future__ import annotations

from tests.check.bench import IMPLS, MAP, Bench
from tests.check.examples import COMMON, INTERFACE, Example

SERVER_ARGS = "sglang/srt/server_args.py"

FIELDS = """\
class ServerArgs:
    model_path: A[str, "Where the weights are."]
    page_size: A[Optional[int], "Tokens per page."] = None
    kv_cache_dtype: A[str, Arg(help="Of the cache.", choices=["auto", "bf16"])] = "auto"
"""

REGISTRY = """
def register_op(name):
    return lambda function: OPS.setdefault(name, function)

OPS = {}

@register_op("kunlun")
def upstreams_own():
    pass
"""

REGISTER = """\
hooks:
  - id: op
    why: upstream runs what is registered under the name
    type: register
    value: [kunlun]
    impl: "our_impls:set_affinity"
    at:
      - target: sglang.srt.ops.register_op
        readback: {target: sglang.srt.ops.OPS}
"""

CUSTOM_OPS = """
def direct_register_custom_op(op_name, op_func):
    if is_npu() or current_platform.is_out_of_tree():
        lib.impl(op_name, op_func, "PrivateUse1")
    else:
        lib.impl(op_name, op_func, "CUDA")
"""


def with_server_args(bench: Bench, *entries: str) -> Bench:
    """Give the release server arguments, and the map these entries."""
    listed = "".join(f"  - {{{entry}, why: the device needs it}}\n" for entry in entries)
    spelled = "  server_args:\n    - {method: apply_server_args_defaults}\n"
    changed = bench.add(SERVER_ARGS, FIELDS).edit(
        INTERFACE,
        "    def supports_mamba",
        "    def apply_server_args_defaults(self, server_args):\n"
        "                pass\n\n"
        "            def supports_mamba",
    )
    changed = changed.edit(MAP, "  process.scheduler:\n", f"{spelled}  process.scheduler:\n")
    return changed.edit(MAP, "hooks:\n", f"server_args:\n{listed}hooks:\n")


EXAMPLES: dict[str, Example] = {
    "KA207": Example(
        lambda b: b.edit(IMPLS, "def total_memory(device_id=0):", "def total_memory(device_id=0) -> str:"),
        MAP, '"our_impls:total_memory"', suggests="`def total_memory(device_id=0) -> int: …`",
    ),
    "KA208": Example(
        lambda b: b.edit("sglang/srt/model_executor/graphs.py", "platform.capabilities.graph_capture", "True"),
        MAP, "{card: true, simulator: false}", suggests="turn it off",
    ),
    "KA209": Example(
        lambda b: with_server_args(b, "arg: page_size, default: fast"),
        MAP, "fast,", suggests="a value of type Optional[int]",
    ),
    "KA210": Example(
        lambda b: b.add("sglang/srt/ops.py", REGISTRY).edit(MAP, "hooks:\n", REGISTER),
        MAP, "[kunlun]\n    impl", suggests="`accepts: [{code: KA210,",
    ),
    "KA211": Example(
        lambda b: b.add(COMMON, CUSTOM_OPS),
        MAP, "cuda, dispatch_key", suggests="`accepts: [{code: KA211,",
    ),
    "KA501": Example(
        lambda b: b.edit(MAP, '- {sglang: ">=0", verified', '- {sglang: "0.5.18", verified'),
        MAP, "stack:", suggests='stack: add {sglang: "0.5.19"',
    ),
}  # fmt: skip

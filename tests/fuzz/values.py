# ruff: noqa: E501 -- the tables are easier to scan in wide lines
"""Written values and keys that mutants are given: plausible ones by kind, and hostile ones."""

from __future__ import annotations

RANGES = [
    "'>=0'", "'<0'", "'===x'", "'==0.5.19'", "'>=0.5.17,<0.5.24'", "'~=0.5.17'", "'!=0.5.19'",
    "'>=0.5.19.post1'", "'>=99999999999999999999'", "'>=1!0'", "''", "'>=0.5,>=0.5,<0.6'", "'==0.5.*'",
]  # fmt: skip
TARGETS = [
    "sglang.srt.utils.common.set_gpu_proc_affinity", "sglang", "sglang.srt", "a.b.c", "builtins.eval",
    "sglang.srt.layers.activation.SiluAndMul", "sglang.srt.platforms.interface.SRTPlatform",
    "sglang.srt.layers.activation.SiluAndMul.forward_native", "x" * 300, "a." * 60 + "b",
    "sglang.srt.server_args.ServerArgs", "torch.cuda.is_available", "__import__", "_", "class.x",
]  # fmt: skip
IMPLS = [
    '"kunlun_adapt.hooks.host:device"', '"kunlun_adapt.nothing:here"', '"os:system"', '"a:b.c.d"',
    '"kunlun_adapt.golden.activation:silu_and_mul"', '"sglang.srt.utils.common:nothing"', '":"',
    '"kunlun_adapt.cli:main"', '"a.b"', '"a:b; import os"', '"kunlun_adapt.plugin:activate"',
]  # fmt: skip
CONDITIONS = [
    '"<= 64"', '"64..1024"', '"1024..64"', '"% 128 == 0"', '"% 0 == 0"', "power_of_two", '"~ 1e-6"',
    '"~ 0"', "none", "present", "[float16, bfloat16]", "[]", "true", "null", '"<= 1e999"', '"!= 7"',
    '"% 999999999999 == 1"', '">= -5"', "{a: 1}", "[[1]]", "[1, true, none]", '"<="', '"0..0"',
]  # fmt: skip
FORMULAS = [
    '"x.shape[0]"', '"x.shape[0] // 0"', '"x.max()"', '"x"', '"1 + 1"', '"a"', '"x.shape[0] * 9 ** 9"',
    '"-x.shape[-1] % 7 == 0"', '"((((1))))"', '"__import__(\'os\')"', '"lambda: 1"', '"1 if 1 else 2"',
    '"x.shape[0] == x.shape[1] == 2"', '"' + "(" * 150 + '"', '"' + "-" * 390 + '1"', '"[y for y in x]"',
    '"' + "1+" * 190 + '1"', '"99999999999999999999999999"', '"x.shape[99]"', '"env.A"', "'f\"{x}\"'",
]  # fmt: skip
PLAIN = [
    "0", "1", "-1", "1.5", ".inf", "-.inf", ".nan", "true", "false", "null", "~", "''", '"0.5"', "x",
    "9" * 40, "9" * 4400, "1e400", "0x" + "f" * 600, "-0.0", "[]", "{}", "[[]]", "{a: {b: {}}}", "- x",
    "planned", "active", "function", "oot_forward", "launcher", "replace", "set", "add", "register",
    "extend", "around", "card", "simulator", "error", "skip", "$any", "$grid", "golden", "golden.x",
]  # fmt: skip
HOSTILE = [
    '"x\\"\\"\\"\\nimport os\\n"', "\"'); import os; ('\"", '"{{ 7 * 7 }}{% for x in y %}"', '"\\u2028"',
    '"\\\\"', '"\\u202e"', '"\\x00"', '"%s%d%n"', '"../../../../etc/passwd"', '"é键𝔘"', '"\\ud800"',
    "*a", "&a 1", "!!python/object/apply:os.system [x]", "!x", "<<: *b", "@", "`", "%TAG", "? x", "|",
    ">-", "'", '"', "[", "{", "]", "}", "#", ":", "- - - -", "[" * 70 + "]" * 70, "{a: " * 70 + "}" * 70,
    "|\n  text\n", '"[bold red]x[/]"', '"[/]"', '"<script>"', '"]]>"', '"::error::x"', '"%0A::warning::"',
]  # fmt: skip
KEYS = [
    "name", "why", "sglang", "target", "args", "when", "impl", "fallback", "needs", "weights", "at", "id",
    "excluded", "served", "accepts", "watch", "runs_after", "process", "profiles", "readback", "value",
    "reads", "derive", "prepare", "fixed", "serves", "conflicts", "stack", "env.A", "server.page_size",
    "op.kunlun_ops.swiglu", "x.dtype", "x.shape[0]", "x.item", "x", "rows", "<<", "''", "1", "true", "é",
]  # fmt: skip
PARAMS = [
    '"Tensor[rows, 2*d]"', '"Tensor[...]"', "Tensor", '"Tensor | None"', '"int | None"', "int", "float",
    "str", "bool", "object", '"Tensor[a] float16, host"', '"Tensor[a] float17"', '"int | str"', '"Tensor["',
    '"Tensor[..., 8, d]"', '"Tensor[' + "a," * 200 + 'a]"', '"None"', '"| None"', '"Tensor[1/0]"',
]  # fmt: skip
BY_KEY = {
    "sglang": RANGES, "target": TARGETS, "watch": TARGETS, "repair": TARGETS, "impl": IMPLS,
    "golden": IMPLS, "when": CONDITIONS, "derive": FORMULAS, "params": PARAMS, "returns": IMPLS,
}  # fmt: skip
INNER = ("when", "derive", "params")
"""Keys whose entries have names of their own, and values of one kind."""

POOLS = (RANGES, TARGETS, IMPLS, CONDITIONS, FORMULAS, PLAIN, PLAIN, HOSTILE)

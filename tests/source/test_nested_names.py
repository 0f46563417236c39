"""Implementations that stand inside a class: `package.module:Class.method`."""

from __future__ import annotations

import ast
from pathlib import Path

from kunlun_adapt.documents import load_catalog
from kunlun_adapt.plan import make_plan
from kunlun_adapt.source import compile_plan, template_folder
from tests.check.bench import IMPLS, MAP, RECIPE, Bench

ROOT = Path(__file__).resolve().parents[2]


def modules(bench: Bench) -> dict[str, str]:
    assert "KA301" not in {f.code for f in bench.findings()}  # writes the workspace
    plan = make_plan(load_catalog(bench.root / "workspace"), bench.resolver(), "simulator")
    return dict(compile_plan(plan, template_folder(ROOT)).modules)


def test_a_kernel_inside_a_class(tmp_path: Path) -> None:
    bench = Bench(tmp_path).edit(RECIPE, '"our_impls:swiglu"', '"our_impls:Kernels.inner.swiglu"')
    bench = bench.edit(
        IMPLS,
        "def swiglu(x, out, *, turn):\n    return x\n",
        "class Kernels:\n    class inner:\n        @staticmethod\n"
        "        def swiglu(x, out, *, turn):\n            return x\n",
    )
    text = modules(bench)["operators/silu_and_mul"]
    ast.parse(text)
    assert "from our_impls import Kernels as kernel_swiglu\n" in text
    assert "\nkernel_swiglu = kernel_swiglu.inner.swiglu\n" in text


def test_a_class_inside_a_class(tmp_path: Path) -> None:
    bench = Bench(tmp_path).edit(MAP, 'mha: "our_impls:Pool"', 'mha: "our_impls:Pool.Inner"')
    bench = bench.edit(
        IMPLS, "class Pool:\n    pass\n", "class Pool:\n    class Inner:\n        pass\n"
    )
    text = modules(bench)["platform"]
    ast.parse(text)
    assert "from our_impls import Pool\n" in text and "return Pool.Inner\n" in text


def test_what_is_asked_of_a_server_argument_does_not_raise(tmp_path: Path) -> None:
    arguments = """\
server_args:
  - {arg: page_size, default: 128, when: {max_total_tokens: "<= 64", device: cpu}, why: a b}
interface:
  server_args: [{method: supports_mamba}]
"""
    bench = Bench(tmp_path).edit(MAP, "interface:\n", arguments)
    bench = bench.edit(MAP, "{member: supports_mamba,", "{member: get_device_uuid,")
    text = modules(bench)["platform"]
    asked = "isinstance(server_args.max_total_tokens, (int, float))"
    assert f"({asked} and server_args.max_total_tokens <= 64)" in text
    assert "server_args.device == 'cpu'" in text

"""Conditions on server arguments, in the text that is generated for them."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from kunlun_adapt.diagnostics import AdaptError
from kunlun_adapt.documents import load_catalog
from kunlun_adapt.plan import make_plan
from kunlun_adapt.source import compile_plan, template_folder
from tests.check.bench import MAP, RECIPE, Bench

ROOT = Path(__file__).resolve().parents[2]
OPERATOR = "operators/silu_and_mul"
ACCESSOR = """\
interface:
  server_args_accessor: [{call: sglang.srt.runtime_context.get_server_args}]
"""


def bench_of(root: Path, when: str) -> Bench:
    bench = Bench(root).edit(RECIPE, "x.dtype: [float16, bfloat16]\n", "x.ndim: 2\n")
    bench = bench.edit(RECIPE, 'rows: "<= 8192"', when)
    return bench.add("sglang/srt/runtime_context.py", "def get_server_args():\n    pass\n")


def compiled(bench: Bench) -> str:
    assert bench.findings() is not None  # writes the workspace
    plan = make_plan(load_catalog(bench.root / "workspace"), bench.resolver(), "simulator")
    return compile_plan(plan, template_folder(ROOT)).modules[OPERATOR]


def test_they_are_read_once_and_on_the_first_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    when = "server.page_size: [64, 128]\n      server.kv_cache_dtype: none"
    text = compiled(bench_of(tmp_path, when).edit(MAP, "interface:\n", ACCESSOR))
    asked: list[int] = []
    arguments = SimpleNamespace(page_size=64, kv_cache_dtype=None)

    def get_server_args() -> Any:
        asked.append(1)
        return arguments

    stand_ins = {
        "torch": {}, "torch.compiler": {"is_dynamo_compiling": lambda: False},
        "our_impls": {
            "swiglu": lambda x, out, turn: "swiglu", "silu_golden": lambda x, out: "golden",
        },
    }  # fmt: skip
    for name, members in stand_ins.items():
        module = ModuleType(name)
        vars(module).update(members)
        monkeypatch.setitem(sys.modules, name, module)
    generated: dict[str, Any] = {}
    exec(compile(text, OPERATOR, "exec"), generated)
    assert asked == []
    module = ModuleType("sglang.srt.runtime_context")
    vars(module)["get_server_args"] = get_server_args
    for name in ("sglang", "sglang.srt"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, "sglang.srt.runtime_context", module)
    x = SimpleNamespace(ndim=2, is_contiguous=lambda: True, contiguous=lambda: None)
    assert generated["bind_silu_and_mul"](x) == "swiglu"
    arguments.page_size = 32
    assert generated["bind_silu_and_mul"](x) == "swiglu"
    assert generated["bind_SiluAndMul"](None, x) == "swiglu"
    assert asked == [1]


def test_without_a_spelling_there_is_nothing_to_generate(tmp_path: Path) -> None:
    with pytest.raises(AdaptError, match="hands out its server arguments"):
        compiled(bench_of(tmp_path, "server.page_size: 64"))


def test_an_operator_without_them_does_not_ask(tmp_path: Path) -> None:
    assert "_server" not in compiled(bench_of(tmp_path, 'rows: "<= 8192"'))

"""Upstream's own names, asked for in a process of the installed release: no server is needed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.runtime.installed import run_installed
from tests.runtime.stage import MAP, ROOT

pytestmark = pytest.mark.server

RECIPE = """\
apiVersion: kunlun-adapt/v1
kind: OperatorRecipe
name: asks_the_server
family: test
why: a test
golden: "kunlun_adapt.golden.elementwise:gate_sigmoid_mul"
params: {hidden: "Tensor[tokens, width]", gate_weight: "Tensor", shared: "Tensor[tokens, width]"}
returns: "Tensor[tokens, width]"
capture: safe
serves: [kv_pool.mha]
kernels:
  - name: paged
    impl: "kunlun_adapt.golden.elementwise:gate_sigmoid_mul"
    when: {server.page_size: 16}
  - {name: golden, fallback: true}
otherwise: error
"""
SERVER = """
import json
import torch
from sglang.srt.platforms import current_platform
assert type(current_platform).__module__ == "kunlun_adapt_generated.platform"
from kunlun_adapt.runtime import ledger
from kunlun_adapt.runtime.operators import operator
from sglang.srt.runtime_context import publish
from sglang.srt.server_args import ServerArgs
serve = operator("asks_the_server")
arguments = torch.ones(2, 4), torch.ones(1, 4), torch.ones(2, 4)
try:
    serve(*arguments)
    early = "served"
except Exception as error:
    early = type(error).__name__
publish(ServerArgs(model_path="dummy", page_size=PAGE), role="scheduler")
serve(*arguments)
serve(*arguments)
print(json.dumps([early, ledger.LEDGER.tallies["asks_the_server"][1]]))
"""


@pytest.mark.parametrize(("page", "counts"), [(16, [2, 0]), (1, [0, 2])])
def test_a_condition_reads_the_arguments_that_the_release_hands_out(
    tmp_path: Path, page: int, counts: list[int]
) -> None:
    """And not too early: before there are any, the call fails instead of choosing a tier."""
    shutil.copy2(ROOT / MAP, tmp_path / MAP)
    shutil.copytree(ROOT / "operator_recipes", tmp_path / "operator_recipes")
    (tmp_path / "operator_recipes" / "asks.yaml").write_text(RECIPE, encoding="utf-8")
    code = SERVER.replace("PAGE", str(page))
    done = run_installed(code, tmp_path, tmp_path / "cache")
    early, served = json.loads(done.stdout.splitlines()[-1])
    assert early != "served" and served == counts


SPELLING = "  split_ops: [{call: sglang.srt.compilation.compilation_config.SPLIT_OPS}]\n"
SPLIT = """
import json
import sys
import types
import torch
from sglang.srt.platforms import current_platform
# What upstream captures with exists for devices only; what cuts the graph stands beside it.
weak = types.SimpleNamespace(weak_ref_tensors=None)
for place in ("compilation", "model_executor.runner_backend_utils"):
    sys.modules[f"sglang.srt.{place}.weak_ref_tensor"] = weak
from sglang.srt.compilation.compilation_config import SPLIT_OPS
from sglang.srt.compilation.backend import split_graph
from kunlun_adapt.runtime import ledger
from kunlun_adapt.runtime.operators import operator
from tests.runtime.operator_calls import operator_calls

attend = operator("paged_prefill_attention")
given = operator_calls()["paged_prefill_attention"][0]
parts = []

def model(**values):
    doubled = {**values, "q": values["q"] * 2}
    return attend(**doubled) + 1

def backend(graph, inputs):
    parts.extend(split_graph(graph, SPLIT_OPS)[1])
    return graph.forward

torch.compile(model, fullgraph=True, backend=backend)(**given)
names = [[str(n.target) for n in p.graph.graph.nodes if n.op == "call_function"] for p in parts]
entry = ledger.LEDGER.entries["capture/split_ops"]
print(json.dumps([[p.is_splitting_graph for p in parts], names, entry.state]))
"""


def test_upstream_cuts_its_piecewise_graph_at_an_eager_operator(tmp_path: Path) -> None:
    text = (ROOT / MAP).read_text(encoding="utf-8")
    spelled = text if SPELLING in text else text.replace("interface:\n", f"interface:\n{SPELLING}")
    (tmp_path / MAP).write_text(spelled, encoding="utf-8")
    (tmp_path / "operator_recipes").symlink_to(ROOT / "operator_recipes")
    done = run_installed(SPLIT, tmp_path, tmp_path / "cache")
    splitting, names, state = json.loads(done.stdout.splitlines()[-1])
    assert splitting == [False, True, False] and state == "applied"
    assert names[1] == ["kunlun_adapt.paged_prefill_attention.default"]
    assert all(not name.startswith("kunlun_adapt.") for name in names[0] + names[2])

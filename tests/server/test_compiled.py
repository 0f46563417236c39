"""With --enable-torch-compile a server's decode steps are compiled, our operators whole in them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.server.architectures import DEEPSEEK_V3, LLAMA, QWEN3_MOE
from tests.server.golden_tokens import golden_completions
from tests.server.models import PROMPTS, TinyModel
from tests.server.releases import before
from tests.server.requests import generate
from tests.server.server import running, serve_command

pytestmark = [pytest.mark.full, pytest.mark.server, pytest.mark.torch]

# Steps of one request, and of all prompts at once with three requests of padding.
SIZES = ("1", "8")
COMPILED = ("--enable-torch-compile", "--torch-compile-max-bs", "8", "--cuda-graph-bs-decode")
LOGS = {"TORCH_LOGS": "graph_breaks,recompiles,graph_code"}
LAYERS = {"rms_norm", "rotary_embedding"}
OPERATORS = {
    LLAMA: LAYERS | {"silu_and_mul", "store_kv_cache", "paged_decode_attention"},
    QWEN3_MOE: LAYERS | {"store_kv_cache", "paged_decode_attention", "moe_topk", "fused_experts"},
    DEEPSEEK_V3: LAYERS | {"silu_and_mul", "store_mla_cache", "mla_decode_attention"},
}
# Upstream multiplies there into a tensor that is not contiguous, which the compiler does not take.
BREAKS = {DEEPSEEK_V3: {"forward_mla.py"}}
_GRAPH = "===== __compiled_fn_"
_BREAK = re.compile(r"Graph break .*in user code at (?:\S*/)?([^/\s:]+):")
_OURS = re.compile(r"torch\.ops\.kunlun_adapt\.(\w+)")


@pytest.mark.parametrize("model", list(OPERATORS), ids=lambda model: model.name)
def test_compiled_decode_steps_say_the_same(
    model: TinyModel, model_folder: Callable[[TinyModel], Path], tmp_path: Path
) -> None:
    if not before("0.5.22"):
        pytest.skip("upstream asks for graphs first, which a CPU lacks: docs/models.md")
    folder = model_folder(model)
    goldens = golden_completions(folder, PROMPTS)
    with running(
        lambda port, runs: serve_command(folder, port, runs, (), (*COMPILED, *SIZES)),
        tmp_path / "server",
        LOGS,
    ) as server:
        started = server.log.read_text(encoding="utf-8", errors="replace")
        first = generate(server, list(goldens[0].input_ids))
        rest = generate(server, [list(golden.input_ids) for golden in goldens])
        log = server.log.read_text(encoding="utf-8", errors="replace")
        ledger = server.ledger(lambda ledger: ledger.tiers().keys() >= OPERATORS[model])
    assert first["output_ids"] == list(goldens[0].output_ids)
    assert [answer["output_ids"] for answer in rest] == [list(one.output_ids) for one in goldens]
    assert set(_OURS.findall(started)) >= OPERATORS[model]
    assert ledger.tiers().keys() >= OPERATORS[model] and not ledger.fallbacks
    breaks = BREAKS.get(model, set())
    assert set(_BREAK.findall(log)) == breaks
    # What the start compiled serves every step; without a break it is one graph for each size.
    assert started.count(_GRAPH) == log.count(_GRAPH)
    assert breaks or started.count(_GRAPH) == len(SIZES)

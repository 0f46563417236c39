"""With --enable-torch-compile a server's decode steps are compiled whole, our operators in them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.server.architectures import DEEPSEEK_V3, LLAMA, QWEN3_MOE
from tests.server.golden_tokens import golden_completions
from tests.server.models import PROMPTS, TinyModel
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
_GRAPH = "===== __compiled_fn_"
_OURS = re.compile(r"torch\.ops\.kunlun_adapt\.(\w+)")


@pytest.mark.parametrize("model", list(OPERATORS), ids=lambda model: model.name)
def test_compiled_decode_steps_say_the_same(
    model: TinyModel, model_folder: Callable[[TinyModel], Path], tmp_path: Path
) -> None:
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
    assert first["output_ids"] == list(goldens[0].output_ids)
    assert [answer["output_ids"] for answer in rest] == [list(one.output_ids) for one in goldens]
    assert set(_OURS.findall(started)) >= OPERATORS[model]
    # One graph for each size: a step breaks nowhere, and what the start compiled serves them all.
    assert started.count(_GRAPH) == log.count(_GRAPH) == len(SIZES)

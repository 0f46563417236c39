"""A real SGLang server with the plugin says what transformers says, token for token."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.server.golden_tokens import NEW_TOKENS, Golden, golden_chats, golden_completions
from tests.server.models import DEEPSEEK_V3, LLAMA, MODELS, PROMPTS, QWEN3_MOE, TinyModel
from tests.server.server import Ledger, Server, running, serve_command
from tests.server.workspace import SABOTAGE, copy_workspace, replace_kernels

pytestmark = [pytest.mark.server, pytest.mark.torch]

# Which tiers have to serve, by the recipes, when a model runs in float32 at page size 16. No other
# tier may serve, so no fallback either.
LAYERS = {
    "rms_norm": {"xpu_rmsnorm", "xpu_add_rmsnorm"},
    "rotary_embedding": {"xpu_rotary_fp32"},
}
DENSE = {"silu_and_mul": {"xpu_swiglu"}}
# Decode and short prompts have few rows; the longest two prompts reach the tiers that sort.
EXPERTS = {"fused_experts": {"xpu_small", "xpu_presorted_small", "xpu_presorted_block"}}
ATTENTION = {
    # A first prompt is prefilled from its own keys, one with a cached prefix from the pages.
    "paged_prefill_attention": {"xpu_prefill_raw", "xpu_prefill_paged"},
    "paged_decode_attention": {"xpu_speculative"},
    "store_kv_cache": {"xpu_store_flash"},
}
LATENT_ATTENTION = {
    # The vendor's indexed latent kernels take 16-bit caches only.
    "mla_prefill_attention": {"xpu_mla_prefill_by_token"},
    "mla_decode_attention": {"xpu_mla_paged"},
    "store_mla_cache": {"xpu_mla_scatter"},
}
EXPECTED_TIERS: dict[TinyModel, dict[str, set[str]]] = {
    LLAMA: {**LAYERS, **DENSE, **ATTENTION},
    QWEN3_MOE: {**LAYERS, **ATTENTION, **EXPERTS, "moe_topk": {"xpu_softmax_topk_norm"}},
    DEEPSEEK_V3: {
        **LAYERS,
        **DENSE,
        **LATENT_ATTENTION,
        **EXPERTS,
        "moe_grouped_topk": {"xpu_sigmoid_group_topk_norm"},
    },
}
# Rounding differs by up to 2e-5 between two correct implementations; a choice as close as that
# would say nothing about the kernels.
LEAST_MARGIN = 1e-4


@dataclass(frozen=True, slots=True)
class Served:
    """One running server with what it has to say."""

    model: TinyModel
    server: Server
    completions: list[Golden]
    chats: list[Golden]


@pytest.fixture(scope="module", params=MODELS, ids=lambda model: model.name)
def served(
    request: pytest.FixtureRequest,
    model_folder: Callable[[TinyModel], Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Served]:
    model: TinyModel = request.param
    folder = model_folder(model)
    completions = golden_completions(folder, PROMPTS)
    chats = golden_chats(folder, PROMPTS)
    place = tmp_path_factory.mktemp(model.name)
    with running(lambda port, runs: serve_command(folder, port, runs), place) as server:
        yield Served(model, server, completions, chats)


def generate(server: Server, input_ids: Any) -> Any:
    """Greedy continuation of one prompt or of a batch, by token ids."""
    sampling = {"temperature": 0, "max_new_tokens": NEW_TOKENS, "ignore_eos": True}
    return server.post("/generate", {"input_ids": input_ids, "sampling_params": sampling})


def chat(server: Server, prompt: str) -> str:
    """The answer to one message, special tokens written out."""
    answer = server.post(
        "/v1/chat/completions",
        {
            "model": "default",
            "messages": [{"role": "user", "content": prompt}],
            "temperature": 0,
            "max_tokens": NEW_TOKENS,
            "ignore_eos": True,
            "skip_special_tokens": False,
        },
    )
    return str(answer["choices"][0]["message"]["content"])


def test_the_golden_choices_are_no_coin_tosses(served: Served) -> None:
    for golden in served.completions + served.chats:
        assert golden.margin > LEAST_MARGIN, golden.prompt
        assert len(golden.output_ids) == NEW_TOKENS


def test_generate_one_by_one(served: Served) -> None:
    served.server.flush_cache()
    for golden in served.completions:
        answer = generate(served.server, list(golden.input_ids))
        assert answer["output_ids"] == list(golden.output_ids), golden.prompt


def test_generate_batched(served: Served) -> None:
    served.server.flush_cache()
    batch = [list(golden.input_ids) for golden in served.completions]
    # The second time every prompt finds its pages in the prefix cache.
    for _ in range(2):
        answers = generate(served.server, batch)
        assert [answer["output_ids"] for answer in answers] == [
            list(golden.output_ids) for golden in served.completions
        ]


def test_chat_one_by_one(served: Served) -> None:
    served.server.flush_cache()
    for golden in served.chats:
        assert chat(served.server, golden.prompt) == golden.text


def test_chat_at_the_same_time(served: Served) -> None:
    served.server.flush_cache()
    with ThreadPoolExecutor(len(served.chats)) as pool:
        prompts = [golden.prompt for golden in served.chats]
        answers = list(pool.map(lambda prompt: chat(served.server, prompt), prompts))
    assert answers == [golden.text for golden in served.chats]


def test_each_operator_was_served_by_its_tier(served: Served) -> None:
    batch = [list(golden.input_ids) for golden in served.completions]
    served.server.flush_cache()
    generate(served.server, batch)
    generate(served.server, batch)
    expected = EXPECTED_TIERS[served.model]

    def complete(ledger: Ledger) -> bool:
        return ledger.tiers() == expected

    ledger = served.server.ledger(complete)
    assert ledger.tiers() == expected
    assert not ledger.fallbacks


def test_every_process_has_its_bindings_in_effect(served: Served) -> None:
    generate(served.server, list(served.completions[0].input_ids))
    ledger = served.server.ledger(lambda ledger: len(set(ledger.processes)) >= 3)
    # SGLang's own processes: one answers HTTP and tokenizes, one schedules, one detokenizes.
    assert len(ledger.processes) >= 3, ledger.processes
    failed = {name for name, states in ledger.bindings.items() if "failed" in states}
    assert not failed
    assert any("applied" in states for states in ledger.bindings.values())


def test_a_sabotaged_kernel_changes_the_tokens(
    model_folder: Callable[[TinyModel], Path], tmp_path: Path
) -> None:
    folder = model_folder(LLAMA)
    workspace = copy_workspace(tmp_path / "workspace")
    replace_kernels(workspace, "silu_and_mul", "kunlun_sabotage:silu_and_mul")
    golden = golden_completions(folder, PROMPTS)
    options = ("--workspace", str(workspace))
    environment = {"PYTHONPATH": str(SABOTAGE)}
    with running(
        lambda port, runs: serve_command(folder, port, runs, options),
        tmp_path / "server",
        environment,
    ) as server:
        answers = generate(server, [list(one.input_ids) for one in golden])
        ledger = server.ledger(lambda ledger: "silu_and_mul" in ledger.operators)
    served = [answer["output_ids"] for answer in answers]
    assert all(len(ids) == NEW_TOKENS for ids in served)
    assert served != [list(one.output_ids) for one in golden]
    # The wrong kernel was the one that the ledger names, and no fallback hid it.
    assert ledger.tiers()["silu_and_mul"] == EXPECTED_TIERS[LLAMA]["silu_and_mul"]

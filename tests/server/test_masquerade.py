"""A server whose simulated device reports cuda: what it takes from the map, and how far it gets.

The deployments with `device="cuda"` in tests/server/deployments.py ask such servers for more. A
model that gets further than its stop fails here, so that docs/simulator.md can follow.
"""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.server.deployments import TIERS
from tests.server.golden_tokens import golden_chats, golden_completions
from tests.server.models import LLAMA, PROMPTS, TinyModel
from tests.server.releases import release
from tests.server.requests import chat_streamed, complete, generate, logprob_difference
from tests.server.server import Server, running, serve_command
from tests.server.test_models_that_stop import (
    MODELS,
    OWN_ALLOCATOR,
    Stop,
    log_of_the_stop,
)
from tests.server.test_tokens import MOST_LOGPROB_DIFFERENCE

pytestmark = [pytest.mark.server, pytest.mark.torch]

# One that fills no page of 128 tokens, and one that fills several.
SHORT_AND_LONG = (PROMPTS[1], PROMPTS[3])
MASKED = ("--device", "cuda")
# gpt-oss gets as far as what it reads of its own configuration.
GPT_OSS = {**MODELS["gpt_oss"], "swiglu_limit": 7.0, "initial_context_length": 4096}
STOPS: dict[tuple[str, str], Stop] = {
    ("deepseek_v32", "0.5.19"): Stop("kernels/ops/attention/dsv4/topk.py", "plan_topk_v2"),
    ("deepseek_v4", "0.5.19"): Stop("unified_cache/components/swa_component.py", OWN_ALLOCATOR),
    ("gpt_oss", "0.5.19"): Stop("unified_cache/components/swa_component.py", OWN_ALLOCATOR),
}


def test_llama_on_a_device_called_cuda(
    model_folder: Callable[[TinyModel], Path], tmp_path: Path
) -> None:
    folder = model_folder(LLAMA)
    goldens = golden_completions(folder, SHORT_AND_LONG)
    (talk,) = golden_chats(folder, SHORT_AND_LONG[:1])
    with running(lambda port, runs: _masked_command(folder, port, runs), tmp_path) as server:
        arguments = _resolved_arguments(server)
        difference = logprob_difference(server, goldens)
        answers = generate(server, [list(one.input_ids) for one in goldens])
        text, _ = chat_streamed(server, talk.prompt)
        completed = complete(server, goldens[1].input_ids)
        ledger = server.ledger(lambda ledger: ledger.tiers() == TIERS[LLAMA])
    # No argument of the command names any of them: the map does, as on a card.
    assert arguments["device"] == "cuda"
    assert arguments["attention_backend"] == "kunlun"
    assert arguments["page_size"] == 128
    assert difference < MOST_LOGPROB_DIFFERENCE
    assert [answer["output_ids"] for answer in answers] == [list(one.output_ids) for one in goldens]
    assert (text, completed) == (talk.text, goldens[1].text)
    assert ledger.tiers() == TIERS[LLAMA] and not ledger.fallbacks
    assert not {name for name, states in ledger.bindings.items() if "failed" in states}
    log = server.log.read_text(encoding="utf-8", errors="replace")
    assert "in the scheduler process" in log and "profile simulator_cuda" in log


@pytest.mark.full
@pytest.mark.parametrize("name", sorted({name for name, _ in STOPS}))
def test_the_model_stops_where_the_page_says(name: str, tmp_path: Path) -> None:
    stop = STOPS.get((name, release()))
    if stop is None:
        pytest.skip(f"where {name} stops on SGLang {release()} is not recorded")
    config = GPT_OSS if name == "gpt_oss" else MODELS[name]
    text = log_of_the_stop(config, tmp_path, MASKED)
    assert stop.file in text, text[-3000:]
    assert stop.message in text, text[-3000:]


def _masked_command(model: Path, port: int, run_dir: Path) -> list[str]:
    """A command that leaves the page size to the map; the checks of it are tested elsewhere."""
    command = serve_command(model, port, run_dir, (*MASKED, "--no-validate"))
    at = command.index("--page-size")
    return [*command[:at], *command[at + 2 :]]


def _resolved_arguments(server: Server) -> dict[str, object]:
    with urllib.request.urlopen(f"{server.url}/server_info", timeout=30) as answer:
        return dict(json.loads(answer.read()))

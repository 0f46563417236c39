"""A server whose simulated device reports cuda says what transformers says, token for token.

Which models get how far is in docs/simulator.md.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.server.deployments import TIERS
from tests.server.golden_tokens import golden_completions
from tests.server.models import LLAMA, PROMPTS, TinyModel
from tests.server.requests import generate, logprob_difference
from tests.server.server import running, serve_command
from tests.server.test_tokens import MOST_LOGPROB_DIFFERENCE

pytestmark = [pytest.mark.server, pytest.mark.torch, pytest.mark.full]


def test_llama_on_a_device_called_cuda(
    model_folder: Callable[[TinyModel], Path], tmp_path: Path
) -> None:
    folder = model_folder(LLAMA)
    golden = golden_completions(folder, PROMPTS)
    with running(
        lambda port, runs: serve_command(folder, port, runs, ("--device", "cuda")),
        tmp_path,
    ) as server:
        # One by one, then as a batch that finds its pages in the prefix cache.
        difference = logprob_difference(server, golden)
        answers = generate(server, [list(one.input_ids) for one in golden])
        ledger = server.ledger(lambda ledger: ledger.tiers() == TIERS[LLAMA])
    assert [answer["output_ids"] for answer in answers] == [list(one.output_ids) for one in golden]
    assert difference < MOST_LOGPROB_DIFFERENCE
    assert ledger.tiers() == TIERS[LLAMA] and not ledger.fallbacks
    assert not {name for name, states in ledger.bindings.items() if "failed" in states}
    arguments = server.log.read_text(encoding="utf-8", errors="replace")
    # The platform named the backend, since no argument did and upstream asks it for a "cuda".
    assert "profile simulator_cuda" in arguments

"""Every process of a server that is spread over many has the plugin, and says so in its ledger."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.server.golden_tokens import golden_completions
from tests.server.models import LLAMA, PROMPTS, TinyModel
from tests.server.requests import generate
from tests.server.server import running, serve_command

pytestmark = [pytest.mark.full, pytest.mark.server, pytest.mark.torch]

SPREAD = ("--tokenizer-worker-num", "2", "--detokenizer-worker-num", "2")
PROCESSES = {
    "main": 1,
    "tokenizer": 2,
    "detokenizer": 2,
    "detokenizer_router": 1,
    "scheduler": 1,
}


def test_several_tokenizers_and_detokenizers(
    model_folder: Callable[[TinyModel], Path], tmp_path: Path
) -> None:
    folder = model_folder(LLAMA)
    goldens = golden_completions(folder, PROMPTS)
    with running(
        lambda port, runs: serve_command(folder, port, runs, (), SPREAD), tmp_path / "server"
    ) as server:
        with ThreadPoolExecutor(len(goldens)) as pool:
            answers = pool.map(
                lambda golden: generate(server, list(golden.input_ids))["output_ids"], goldens
            )
            assert list(answers) == [list(golden.output_ids) for golden in goldens]
        # On a busy machine uvicorn kills workers that are silent for 10 seconds as they start, and
        # starts others: the second may be late, and those that were killed leave a ledger.
        ledger = server.ledger(lambda ledger: Counter(ledger.living) == PROCESSES, seconds=240)
    assert Counter(ledger.living) == PROCESSES
    assert not {name for name, states in ledger.bindings.items() if "failed" in states}

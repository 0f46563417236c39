"""Half an hour of mixed requests: tokens stay right, memory and latency stay flat."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.server.deployments import Deployment
from tests.server.golden_tokens import golden_chats, golden_completions
from tests.server.models import LLAMA, PROMPTS, TinyModel
from tests.server.server import running, serve_command
from tests.server.soak import soak

MINUTES = float(os.environ.get("KUNLUN_ADAPT_SOAK_MINUTES", "30"))
pytestmark = [
    pytest.mark.server,
    pytest.mark.torch,
    pytest.mark.full,
    # It outlasts the limit that the other tests share.
    pytest.mark.timeout(60 * MINUTES + 900),
]

# Shares of the median that a curve may rise from the end of the warm-up to the end of the run,
# whatever its length. Memory: 2 % of about 1.5 GB is 30 MB, which arenas and logs take; a leak of
# one cache page per request passes it within a minute. Latency: on few cores it follows the load.
MOST_MEMORY_GROWTH = 0.02
MOST_LATENCY_GROWTH = 0.5
DEPLOYMENT = Deployment(LLAMA, 16, 64)


def test_a_soak_leaves_memory_and_latency_flat(
    model_folder: Callable[[TinyModel], Path],
    tmp_path: Path,
    record_property: Callable[[str, object], None],
) -> None:
    if MINUTES <= 0:
        pytest.skip("KUNLUN_ADAPT_SOAK_MINUTES=0")
    folder = model_folder(DEPLOYMENT.model)
    completions = golden_completions(folder, PROMPTS)
    chats = golden_chats(folder, PROMPTS)
    with running(
        lambda port, runs: serve_command(folder, port, runs, (), DEPLOYMENT.arguments),
        tmp_path / "server",
    ) as server:
        curves = soak(server, completions, chats, 60 * MINUTES)
        # Refused while a request is left over, such as one whose client went away.
        server.flush_cache()
        ledger = server.ledger(lambda ledger: ledger.tiers() == DEPLOYMENT.tiers)
        log = server.log.read_text(encoding="utf-8", errors="replace")
    memory, latency = curves.growth(curves.resident), curves.growth(curves.latency)
    report = {
        "minutes": MINUTES,
        "requests": dict(curves.requests),
        "memory growth": round(memory, 4),
        "latency growth": round(latency, 4),
        "first and last resident MB": [round(curves.resident[at] / 1e6) for at in (0, -1)],
    }
    record_property("soak", report)
    print(json.dumps(report))
    assert not curves.wrong, curves.wrong[:5]
    assert len(curves.processes) == 1, "a process came or went during the soak"
    assert memory < MOST_MEMORY_GROWTH
    assert latency < MOST_LATENCY_GROWTH
    assert ledger.tiers() == DEPLOYMENT.tiers
    assert not ledger.fallbacks
    assert not {name for name, states in ledger.bindings.items() if "failed" in states}
    assert "Traceback" not in log

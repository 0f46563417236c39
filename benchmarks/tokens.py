"""Tokens per second of a tiny Llama with our bindings, as ratios to two peers in one run.

    benchmarks/tokens.py [ROUNDS [NEW_TOKENS]]

The peers: the same SGLang with a minimal platform written by hand (`handwritten_plugin/`), and our
bindings without read-back, ledger and counters (`bare/`). All three servers run at once, asleep but
for the one that is asked, and are asked in turns. Needs SGLang in this environment.
"""

from __future__ import annotations

import contextlib
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from kunlun_adapt.simulator import standin_paths  # noqa: E402
from tests.server.models import LLAMA, make_model  # noqa: E402
from tests.server.server import Server, plain_command, running, serve_command  # noqa: E402

HERE = Path(__file__).resolve().parent
ROUNDS = 5
NEW_TOKENS = 128
BATCH = 8
# Page size 1, where the hand-written platform needs no allocator of its own.
ARGUMENTS = ("--page-size", "1", "--sleep-on-idle", "--disable-radix-cache")


def tokens_per_second(server: Server, new_tokens: int) -> float:
    """Continue a batch of prompts and return the rate."""
    prompts = [list(range(5 + row, 25 + row)) for row in range(BATCH)]
    sampling = {"temperature": 0, "max_new_tokens": new_tokens, "ignore_eos": True}
    begun = time.perf_counter()
    answers = server.post("/generate", {"input_ids": prompts, "sampling_params": sampling})
    seconds = time.perf_counter() - begun
    count = sum(len(answer["output_ids"]) for answer in answers)
    if count != BATCH * new_tokens:
        raise SystemExit(f"{count} tokens came back, not {BATCH * new_tokens}")
    return count / seconds


def main() -> int:
    rounds, new_tokens = (
        int(sys.argv[at]) if len(sys.argv) > at else default
        for at, default in ((1, ROUNDS), (2, NEW_TOKENS))
    )
    scratch = Path(tempfile.mkdtemp(prefix="kunlun-adapt-tokens-"))
    model = make_model(LLAMA, scratch)
    by_hand = {
        "SGLANG_PLATFORM": "handwritten",
        "PYTHONPATH": os.pathsep.join([*standin_paths(), str(HERE / "handwritten_plugin")]),
    }
    native = (*ARGUMENTS, "--attention-backend", "torch_native")
    with contextlib.ExitStack() as stack:
        servers = {
            "ours": stack.enter_context(
                running(
                    lambda port, runs: serve_command(model, port, runs, (), ARGUMENTS),
                    scratch / "ours",
                )
            ),
            "bare": stack.enter_context(
                running(
                    lambda port, runs: serve_command(
                        model, port, runs, ("--no-validate",), ARGUMENTS
                    ),
                    scratch / "bare",
                    {"PYTHONPATH": str(HERE / "bare")},
                )
            ),
            "by hand": stack.enter_context(
                running(
                    lambda port, runs: plain_command(model, port, native),
                    scratch / "by hand",
                    by_hand,
                )
            ),
        }
        for server in servers.values():
            tokens_per_second(server, 16)
        rates: dict[str, list[float]] = {name: [] for name in servers}
        for _ in range(rounds):
            for name, server in servers.items():
                rates[name].append(tokens_per_second(server, new_tokens))
    print(f"{rounds} rounds of {BATCH} prompts, {new_tokens} new tokens each")
    for name, found in rates.items():
        print(f"{name}: {statistics.median(found):.0f} tokens/s")
    for peer, what in (
        ("by hand", "the minimal platform written by hand, upstream's torch attention"),
        ("bare", "the same bindings without read-back, ledger and counters"),
    ):
        ratios = sorted(a / b for a, b in zip(rates["ours"], rates[peer], strict=True))
        print(
            f"ours / {what}: {statistics.median(ratios):.3f} ({ratios[0]:.3f} to {ratios[-1]:.3f})"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())

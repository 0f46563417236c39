"""Tokens per second of a tiny Llama with our bindings, as ratios to three peers in one run.

The peers: the same bindings written by hand (`handwritten_bindings/`: same kernels and simulated
vendor ops), our bindings without read-back, ledger and counters (`bare/`), and a minimal platform
written by hand on upstream's own torch code (`handwritten_plugin/`). All servers run at once,
asleep but for the one that is asked, and are asked in turns, each once in vain before it counts.
The clock depends on what else runs here; the processor's seconds, of all processes of the server
that is asked, hardly do. Needs SGLang in this environment.
"""

from __future__ import annotations

import contextlib
import os
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from arguments import at_least, parser

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from kunlun_adapt.simulator import standin_paths  # noqa: E402

if TYPE_CHECKING:  # the help needs neither torch nor SGLang
    from tests.server.server import Server

HERE = Path(__file__).resolve().parent
ROUNDS = 5
NEW_TOKENS = 128
BATCH = 8
WARM_UP = 8
PEERS = {
    "by hand": "the same bindings written by hand",
    "bare": "the same bindings without read-back, ledger and counters",
    "minimal": "the minimal platform written by hand, upstream's torch attention",
}
# Page size 1, where the minimal platform needs no allocator of its own.
ARGUMENTS = ("--page-size", "1", "--sleep-on-idle", "--disable-radix-cache")


@dataclass(frozen=True, slots=True)
class Rate:
    """Tokens per second of the clock, and of the processor, of one turn."""

    clock: float
    processor: float


def processor_seconds(server: Server) -> float:
    """Return what all processes of a server have used so far."""
    import psutil

    main = psutil.Process(server.process.pid)
    times = [p.cpu_times() for p in (main, *main.children(recursive=True))]
    return float(sum(t.user + t.system for t in times))


def ask(server: Server, new_tokens: int) -> tuple[Rate, list[list[int]]]:
    """Continue a batch of prompts; return the rate and the tokens."""
    prompts = [list(range(5 + row, 25 + row)) for row in range(BATCH)]
    sampling = {"temperature": 0, "max_new_tokens": new_tokens, "ignore_eos": True}
    used, begun = processor_seconds(server), time.perf_counter()
    answers = server.post("/generate", {"input_ids": prompts, "sampling_params": sampling})
    clock, used = time.perf_counter() - begun, processor_seconds(server) - used
    tokens = [answer["output_ids"] for answer in answers]
    count = sum(map(len, tokens))
    if count != BATCH * new_tokens:
        raise SystemExit(f"{count} tokens came back, not {BATCH * new_tokens}")
    return Rate(count / clock, count / used), tokens


def main() -> int:
    taken = parser(__doc__)
    taken.add_argument(
        "rounds", nargs="?", type=at_least(3), default=ROUNDS, help="default: %(default)s"
    )
    taken.add_argument(
        "new_tokens", nargs="?", type=at_least(1), default=NEW_TOKENS, help="default: %(default)s"
    )
    given = taken.parse_args()
    rounds, new_tokens = given.rounds, given.new_tokens
    from tests.server.models import LLAMA, make_model
    from tests.server.server import plain_command, running, serve_command

    scratch = Path(tempfile.mkdtemp(prefix="kunlun-adapt-tokens-"))
    model = make_model(LLAMA, scratch)
    standins = standin_paths()
    same = [*standins, str(HERE), str(HERE / "handwritten_bindings")]
    by_hand = {
        "SGLANG_PLATFORM": "handwritten_bindings",
        "PYTHONPATH": os.pathsep.join(same),
    }
    minimal = {
        "SGLANG_PLATFORM": "handwritten",
        "PYTHONPATH": os.pathsep.join([*standins, str(HERE / "handwritten_plugin")]),
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
                    lambda port, runs: plain_command(model, port, ARGUMENTS),
                    scratch / "by hand",
                    by_hand,
                )
            ),
            "minimal": stack.enter_context(
                running(
                    lambda port, runs: plain_command(model, port, native),
                    scratch / "minimal",
                    minimal,
                )
            ),
        }
        answers = {name: ask(server, new_tokens)[1] for name, server in servers.items()}
        rates: dict[str, list[Rate]] = {name: [] for name in servers}
        for _ in range(rounds):
            # In one order, so that each has slept as long; what it lost meanwhile, it gets back.
            for name, server in servers.items():
                ask(server, WARM_UP)
                rates[name].append(ask(server, new_tokens)[0])
    for name, found in answers.items():
        if name != "minimal" and found != answers["ours"]:
            raise SystemExit(f"{name} makes other tokens than ours: the two compute differently")
    print(f"{rounds} rounds of {BATCH} prompts, {new_tokens} new tokens each")
    for name, turns in rates.items():
        print(f"{name}: {statistics.median(t.clock for t in turns):.0f} tokens/s")
    for peer, what in PEERS.items():
        pairs = list(zip(rates["ours"], rates[peer], strict=True))
        print(
            f"ours / {what}: {spread([a.clock / b.clock for a, b in pairs])} by the clock, "
            f"{spread([a.processor / b.processor for a, b in pairs])} by the processor's seconds"
        )
    return 0


def spread(ratios: list[float]) -> str:
    """Return the median, and the range that holds the middle half."""
    low, middle, high = statistics.quantiles(ratios, n=4)
    return f"{middle:.3f} ({low:.3f} to {high:.3f})"


if __name__ == "__main__":
    sys.exit(main())

"""Mixed load on a server for a while, and what its memory and latency did meanwhile."""

from __future__ import annotations

import random
import statistics
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations

from tests.server.golden_tokens import Golden
from tests.server.requests import SAMPLING, chat, chat_streamed, generate, streamed
from tests.server.server import Server

CLIENTS = 3
PROBE_SECONDS = 1.0
# The first part of a run fills caches, arenas and the prefix tree; curves are judged after it.
WARM_UP = 0.25
# Trends are taken over medians of so many stretches of a run, which a slow moment moves little.
STRETCHES = 20


@dataclass(slots=True)
class Curves:
    """Samples over time, and what was asked for and went wrong."""

    seconds: list[float] = field(default_factory=list)
    resident: list[float] = field(default_factory=list)
    latency: list[float] = field(default_factory=list)
    processes: set[frozenset[int]] = field(default_factory=set)
    requests: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def growth(self, samples: Sequence[float]) -> float:
        """The trend over the judged part of the run, as a share of the median.

        The median of the slopes between all pairs of stretches, times their distance: 0.1 is a
        curve that rose by a tenth of its middle.
        """
        first = int(len(samples) * WARM_UP)
        times, values = self.seconds[first:], list(samples[first:])
        size = max(1, len(values) // STRETCHES)
        points = [
            (statistics.median(times[at : at + size]), statistics.median(values[at : at + size]))
            for at in range(0, len(values), size)
        ]
        slopes = [(v - u) / (t - s) for (s, u), (t, v) in combinations(points, 2) if t > s]
        span = times[-1] - times[0]
        return statistics.median(slopes) * span / statistics.median(values)


def soak(
    server: Server, completions: Sequence[Golden], chats: Sequence[Golden], seconds: float
) -> Curves:
    """Let several clients ask at random for `seconds`, and sample about once a second.

    Answers that come to their end are compared with the golden ones; the seed is fixed.
    """
    curves = Curves()
    ends = time.monotonic() + seconds
    clients = [
        threading.Thread(target=_client, args=(server, completions, chats, curves, ends, number))
        for number in range(CLIENTS)
    ]
    for client in clients:
        client.start()
    started = time.monotonic()
    probe = completions[0]
    while time.monotonic() < ends:
        asked = time.monotonic()
        answer = generate(server, list(probe.input_ids))
        took = time.monotonic() - asked
        if answer["output_ids"] != list(probe.output_ids):
            curves.wrong.append(f"probe after {asked - started:.0f} s")
        resident = server.resident_bytes()
        curves.seconds.append(asked - started)
        curves.latency.append(took)
        curves.resident.append(float(sum(resident.values())))
        curves.processes.add(frozenset(resident))
        time.sleep(max(0.0, PROBE_SECONDS - took))
    for client in clients:
        client.join()
    return curves


def _client(
    server: Server,
    completions: Sequence[Golden],
    chats: Sequence[Golden],
    curves: Curves,
    ends: float,
    number: int,
) -> None:
    chance = random.Random(number)
    kinds = ("one", "batch", "stream", "leave", "abort", "chat", "chat stream")
    while time.monotonic() < ends:
        kind = chance.choice(kinds)
        try:
            if not _ask(server, kind, chance, completions, chats):
                curves.wrong.append(f"{kind}: another answer than transformers'")
        except Exception as error:
            # A client that died would leave a server under less load, and a run that says nothing.
            curves.wrong.append(f"{kind}: {error}")
        curves.requests[kind] += 1


def _ask(
    server: Server,
    kind: str,
    chance: random.Random,
    completions: Sequence[Golden],
    chats: Sequence[Golden],
) -> bool:
    """Ask in one way; whether the answer, as far as it was awaited, is the golden one."""
    golden = chance.choice(completions)
    prompt = list(golden.input_ids)
    talk = chance.choice(chats)
    if kind == "one":
        # Shorter answers and none from the cache but the prefix: lengths differ from call to call.
        count = chance.randint(1, len(golden.output_ids))
        answer = generate(server, prompt, sampling_params={**SAMPLING, "max_new_tokens": count})
        return bool(answer["output_ids"] == list(golden.output_ids[:count]))
    if kind == "batch":
        some = chance.sample(list(completions), chance.randint(2, len(completions)))
        answers = generate(server, [list(one.input_ids) for one in some])
        return [one["output_ids"] for one in answers] == [list(one.output_ids) for one in some]
    if kind == "stream":
        return streamed(server, prompt)[0] == list(golden.output_ids)
    if kind == "leave":
        body = {"input_ids": prompt, "sampling_params": SAMPLING}
        events = server.stream("/generate", body, leave_after=chance.randint(1, 8))
        ids = list(events[-1]["output_ids"])
        return ids == list(golden.output_ids[: len(ids)])
    if kind == "abort":
        return _abort(server, golden, f"soak-{chance.getrandbits(64):x}", chance.random() / 5)
    if kind == "chat":
        return chat(server, talk.prompt) == talk.text
    return chat_streamed(server, talk.prompt)[0] == talk.text


def _abort(server: Server, golden: Golden, rid: str, after: float) -> bool:
    timer = threading.Timer(after, server.send, args=("/abort_request", {"rid": rid}))
    timer.start()
    body = {"input_ids": list(golden.input_ids), "sampling_params": SAMPLING, "rid": rid}
    events = server.stream("/generate", body)
    timer.join()
    ids = list(events[-1]["output_ids"])
    return ids == list(golden.output_ids[: len(ids)])

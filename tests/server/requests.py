"""What the server tests ask a server: greedy continuations, whole and streamed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.server.golden_tokens import NEW_TOKENS, Golden
from tests.server.server import Server

SAMPLING = {"temperature": 0, "max_new_tokens": NEW_TOKENS, "ignore_eos": True}


def generate(server: Server, input_ids: Any, **options: Any) -> Any:
    """Continue one prompt or a batch of prompts, given by token ids."""
    body = {"input_ids": input_ids, "sampling_params": SAMPLING, **options}
    return server.post("/generate", body)


def streamed(server: Server, input_ids: Sequence[int]) -> tuple[list[int], int]:
    """Continue one prompt through `/generate` as a stream; the tokens, and the number of events."""
    body = {"input_ids": list(input_ids), "sampling_params": SAMPLING}
    events = server.stream("/generate", body)
    return list(events[-1]["output_ids"]), len(events)


def chat(server: Server, prompt: str) -> str:
    """The answer to one message, special tokens written out."""
    answer = server.post("/v1/chat/completions", _chat_body(prompt))
    return str(answer["choices"][0]["message"]["content"])


def chat_streamed(server: Server, prompt: str) -> tuple[str, int]:
    """The same, put together from a stream; and the number of events."""
    events = server.stream("/v1/chat/completions", _chat_body(prompt))
    deltas = [choice["delta"] for event in events for choice in event["choices"]]
    return "".join(delta.get("content") or "" for delta in deltas), len(events)


def complete(server: Server, input_ids: Sequence[int]) -> str:
    """The text that continues a prompt given by token ids."""
    answer = server.post("/v1/completions", _completion_body(input_ids))
    return str(answer["choices"][0]["text"])


def complete_streamed(server: Server, input_ids: Sequence[int]) -> tuple[str, int]:
    """The same, put together from a stream; and the number of events."""
    events = server.stream("/v1/completions", _completion_body(input_ids))
    return "".join(event["choices"][0]["text"] for event in events), len(events)


def logprob_difference(server: Server, goldens: Sequence[Golden]) -> float:
    """The largest difference of a chosen token's log-probability from the golden one."""
    largest = 0.0
    for golden in goldens:
        answer = generate(server, list(golden.input_ids), return_logprob=True)
        served = answer["meta_info"]["output_token_logprobs"]
        assert [token for _, token, *_ in served] == list(golden.output_ids), golden.prompt
        differences = [
            abs(logprob - expected)
            for (logprob, *_), expected in zip(served, golden.logprobs, strict=True)
        ]
        largest = max(largest, *differences)
    return largest


def _chat_body(prompt: str) -> dict[str, Any]:
    return {
        **_openai_sampling(),
        "messages": [{"role": "user", "content": prompt}],
    }


def _completion_body(input_ids: Sequence[int]) -> dict[str, Any]:
    return {**_openai_sampling(), "prompt": list(input_ids)}


def _openai_sampling() -> dict[str, Any]:
    return {
        "model": "default",
        "temperature": 0,
        "max_tokens": NEW_TOKENS,
        "ignore_eos": True,
        "skip_special_tokens": False,
    }

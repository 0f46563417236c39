"""What the tokens must be: Hugging Face transformers, greedy, on the same weights."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

NEW_TOKENS = 64


@dataclass(frozen=True, slots=True)
class Golden:
    """One prompt and its greedy continuation."""

    prompt: str
    input_ids: tuple[int, ...]
    output_ids: tuple[int, ...]
    text: str
    # Of each chosen token, at temperature 1.
    logprobs: tuple[float, ...]
    # Smallest distance, in logits, between the chosen token and the runner-up.
    margin: float


def golden_completions(folder: Path, prompts: tuple[str, ...]) -> list[Golden]:
    """Continue each prompt as it stands."""
    tokenizer, network = _load(folder)
    return [
        _continue(tokenizer, network, prompt, tokenizer.encode(prompt, add_special_tokens=False))
        for prompt in prompts
    ]


def golden_chats(folder: Path, prompts: tuple[str, ...]) -> list[Golden]:
    """Answer each prompt as the one message of a user, through the chat template."""
    tokenizer, network = _load(folder)
    return [
        _continue(
            tokenizer,
            network,
            prompt,
            tokenizer.encode(
                tokenizer.apply_chat_template(
                    [{"role": "user", "content": prompt}],
                    add_generation_prompt=True,
                    tokenize=False,
                ),
                add_special_tokens=False,
            ),
        )
        for prompt in prompts
    ]


def _load(folder: Path) -> tuple[Any, Any]:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    # eager: the plainest attention there is, and the same in every release of transformers.
    network = AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager"
    )
    network.eval()
    return AutoTokenizer.from_pretrained(folder), network


def _continue(tokenizer: Any, network: Any, prompt: str, input_ids: list[int]) -> Golden:
    """Take the most likely token `NEW_TOKENS` times; an end-of-text token stops nothing."""
    import torch

    output: list[int] = []
    logprobs: list[float] = []
    margin = float("inf")
    cache = None
    step = torch.tensor([input_ids])
    with torch.inference_mode():
        for _ in range(NEW_TOKENS):
            result = network(input_ids=step, past_key_values=cache, use_cache=True)
            cache = result.past_key_values
            logits = result.logits[0, -1].float()
            best = torch.topk(logits, 2)
            margin = min(margin, float(best.values[0] - best.values[1]))
            output.append(int(best.indices[0]))
            logprobs.append(float(torch.log_softmax(logits, 0)[output[-1]]))
            step = torch.tensor([[output[-1]]])
    return Golden(
        prompt=prompt,
        input_ids=tuple(input_ids),
        output_ids=tuple(output),
        text=tokenizer.decode(output, skip_special_tokens=False),
        logprobs=tuple(logprobs),
        margin=margin,
    )

"""Tiny random-weight models, made on the spot from `architectures`.

They are small enough to serve in seconds on one core, and wide enough that a wrong kernel changes
the greedy tokens. Nothing is downloaded: the tokenizer is trained on the text in this file.
torch and transformers are imported inside functions, so that a checkout without them collects.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

from tests.server.architectures import DEEPSEEK_V3, LLAMA, VOCABULARY, TinyModel

__all__ = ["DEEPSEEK_V3", "LLAMA", "PROMPTS", "SHARED_PREFIX_PROMPTS", "TinyModel", "make_model"]

EOS, START, END = "<|endoftext|>", "<|im_start|>", "<|im_end|>"

CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)

CORPUS = """
A platform plugin is a list of claims about somebody else's code: this symbol exists, has this
signature, is called like this, in this process, before that import. We write every claim down once,
as data, and derive everything from it. The documents say which operator is served by which kernel,
under which condition, and why. A release is read and never imported; what is reviewed is what runs.
The quick brown fox jumps over the lazy dog, and then it does it again with 12 boxes of 3 quarts.
Nothing is silent: not a missed symbol, not a fallback, not a process that never loaded the plugin.
Attention reads the pages of the cache in blocks of sixteen tokens; the first page may be padding.
Experts are chosen by a router: the sum of their weights is one, and the shared expert always runs.
To be, or not to be, that is the question: whether 'tis nobler in the mind to suffer the slings and
arrows of outrageous fortune, or to take arms against a sea of troubles and by opposing end them.
for index in range(0, 10): print(index, "is" if index % 2 == 0 else "is not", "even")  # {a: [1, 2]}
user assistant system: Hello! How are you today? I am fine; thanks. What is the capital of France?
"""

# From shorter than a page of 16 tokens to many pages with a part-filled last one; with two experts
# per token, the last two are long enough for the tiers that sort their rows.
PROMPTS = (
    "Hello!",
    "What is the capital of France?",
    "A platform plugin is a list of claims about somebody else's code. " * 3,
    "Attention reads the pages of the cache in blocks of sixteen tokens; " * 17,
    "The quick brown fox jumps over the lazy dog, and then " * 38,
)

# Longer than one page of 128 tokens, so that every ending finds it in the prefix cache.
SHARED = "We write every claim down once, as data, and derive everything from it. " * 12
SHARED_PREFIX_PROMPTS = tuple(
    SHARED + ending for ending in ("Hello!", "Why?", "(1, 2)", "x", "To be")
)


def make_model(model: TinyModel, cache: Path) -> Path:
    """Write the model and its tokenizer under `cache`, once per content; return its folder."""
    import torch
    import transformers

    config = model.config()
    recipe = json.dumps(
        [
            model.seed,
            CORPUS,
            CHAT_TEMPLATE,
            config.to_dict(),
            torch.__version__,
            transformers.__version__,
        ],
        sort_keys=True,
        default=str,
    )
    folder = cache / f"{model.name}-{hashlib.sha256(recipe.encode()).hexdigest()[:12]}"
    if folder.is_dir():
        return folder
    # Written aside and moved, so that a killed run leaves no half-written model behind.
    draft = folder.with_suffix(".part")
    shutil.rmtree(draft, ignore_errors=True)
    torch.manual_seed(model.seed)
    network = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    _vary(network)
    network.save_pretrained(draft)
    make_tokenizer().save_pretrained(draft)
    draft.rename(folder)
    return folder


def _vary(network: Any) -> None:
    """Give the parameters that start as ones or zeros values that a wrong kernel would drop."""
    import torch

    with torch.no_grad():
        for name, parameter in network.named_parameters():
            if parameter.ndim == 1 and name.endswith("norm.weight"):
                parameter.uniform_(0.5, 1.5)
        for name, buffer in network.named_buffers():
            if name.endswith("e_score_correction_bias"):
                buffer.uniform_(-0.1, 0.1)


def make_tokenizer() -> Any:
    """A BPE tokenizer of exactly `VOCABULARY` ASCII tokens.

    Each token is valid text by itself, so that text comparison means token comparison.
    """
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    printable = [chr(code) for code in range(0x21, 0x7F)]
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        min_frequency=1,
        show_progress=False,
        special_tokens=[EOS, START, END],
        # Ġ and Ċ stand for the space and the line feed in byte-level BPE.
        initial_alphabet=[*printable, "Ġ", "Ċ"],
    )
    core.train_from_iterator(CORPUS.splitlines(keepends=True), trainer)
    size = core.get_vocab_size()
    if size != VOCABULARY:
        raise AssertionError(f"the corpus gives {size} tokens, the models have {VOCABULARY}")
    return PreTrainedTokenizerFast(
        tokenizer_object=core,
        bos_token=EOS,
        eos_token=EOS,
        pad_token=EOS,
        additional_special_tokens=[START, END],
        chat_template=CHAT_TEMPLATE,
        clean_up_tokenization_spaces=False,
    )

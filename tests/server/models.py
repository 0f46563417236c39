"""Tiny random-weight models, made on the spot: Llama, Qwen3-MoE and DeepSeek-V3 (MLA).

They are small enough to serve in seconds on one core, and wide enough that a wrong kernel changes
the greedy tokens. Nothing is downloaded: the tokenizer is trained on the text in this file.
torch and transformers are imported inside functions, so that a checkout without them collects.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# Chosen for greedy choices that are never closer than 2e-4 in logits; rounding stays below 2e-5.
SEED = 1
VOCABULARY = 512
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


@dataclass(frozen=True, slots=True)
class TinyModel:
    """One architecture: its name and how its configuration is made."""

    name: str
    config: Callable[[], Any]


def _common() -> dict[str, Any]:
    return {
        "vocab_size": VOCABULARY,
        "max_position_embeddings": 4096,
        "bos_token_id": 0,
        "eos_token_id": 0,
        "pad_token_id": 0,
        "tie_word_embeddings": False,
        # The usual 0.02 leaves the logits of so small a model almost equal; greedy choice would
        # then hang on rounding.
        "initializer_range": 0.1,
    }


def _llama() -> Any:
    from transformers import LlamaConfig

    return LlamaConfig(
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=64,
        **_common(),
    )


def _qwen3_moe() -> Any:
    from transformers import Qwen3MoeConfig

    return Qwen3MoeConfig(
        hidden_size=128,
        intermediate_size=256,
        moe_intermediate_size=64,
        num_experts=8,
        num_experts_per_tok=2,
        norm_topk_prob=True,
        decoder_sparse_step=1,
        mlp_only_layers=[],
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=64,
        **_common(),
    )


def _deepseek_v3() -> Any:
    from transformers import DeepseekV3Config

    return DeepseekV3Config(
        hidden_size=128,
        intermediate_size=256,
        moe_intermediate_size=64,
        n_routed_experts=8,
        n_shared_experts=1,
        num_experts_per_tok=2,
        n_group=2,
        topk_group=1,
        norm_topk_prob=True,
        routed_scaling_factor=1.5,
        first_k_dense_replace=1,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=4,
        q_lora_rank=64,
        # The one latent width (512 + 64) that the vendor's MLA kernels take.
        kv_lora_rank=512,
        qk_nope_head_dim=64,
        qk_rope_head_dim=64,
        v_head_dim=64,
        num_nextn_predict_layers=0,
        # In the published config.json and read by SGLang, though transformers has no use for them.
        moe_layer_freq=1,
        topk_method="noaux_tc",
        scoring_func="sigmoid",
        **_common(),
    )


LLAMA = TinyModel("llama", _llama)
QWEN3_MOE = TinyModel("qwen3_moe", _qwen3_moe)
DEEPSEEK_V3 = TinyModel("deepseek_v3", _deepseek_v3)
MODELS = (LLAMA, QWEN3_MOE, DEEPSEEK_V3)


def make_model(model: TinyModel, cache: Path) -> Path:
    """Write the model and its tokenizer under `cache`, once per content; return its folder."""
    import torch
    import transformers

    config = model.config()
    recipe = json.dumps(
        [
            SEED,
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
    torch.manual_seed(SEED)
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

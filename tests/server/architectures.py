"""The architectures of the tiny models: what transformers' configuration of each says.

transformers is imported inside functions, so that a checkout without it collects.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

VOCABULARY = 512
# Tokens that a layer with a sliding window sees.
WINDOW = 23


@dataclass(frozen=True, slots=True)
class TinyModel:
    """One architecture: its name and how its configuration is made."""

    name: str
    config: Callable[[], Any]
    # Of the weights, chosen for greedy choices that are never closer than 2e-4 in logits; rounding
    # stays below 2e-5.
    seed: int = 1


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


def _qwen2() -> Any:
    from transformers import Qwen2Config

    # Heads are hidden_size / num_attention_heads wide; queries, keys and values have biases.
    return Qwen2Config(
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        **_common(),
    )


def _qwen3() -> Any:
    from transformers import Qwen3Config

    return Qwen3Config(
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=64,
        **_common(),
    )


def _qwen2_moe() -> Any:
    from transformers import Qwen2MoeConfig

    # The shared expert has a gate of its own.
    return Qwen2MoeConfig(
        hidden_size=128,
        intermediate_size=256,
        moe_intermediate_size=64,
        shared_expert_intermediate_size=128,
        num_experts=8,
        num_experts_per_tok=2,
        norm_topk_prob=False,
        decoder_sparse_step=1,
        mlp_only_layers=[],
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        **_common(),
    )


def _deepseek_v2() -> Any:
    from transformers import DeepseekV2Config

    # As V2-Lite: queries without a low rank, softmax routing without a bias.
    return DeepseekV2Config(
        hidden_size=128,
        intermediate_size=256,
        moe_intermediate_size=64,
        n_routed_experts=8,
        n_shared_experts=1,
        num_experts_per_tok=2,
        n_group=1,
        topk_group=1,
        topk_method="greedy",
        scoring_func="softmax",
        norm_topk_prob=False,
        routed_scaling_factor=1.0,
        first_k_dense_replace=1,
        moe_layer_freq=1,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=4,
        q_lora_rank=None,
        kv_lora_rank=512,
        qk_nope_head_dim=64,
        qk_rope_head_dim=64,
        v_head_dim=64,
        **_common(),
    )


def _olmo3() -> Any:
    from transformers import Olmo3Config

    # The window is shorter than most prompts, and no multiple of a page: it starts inside one.
    config = Olmo3Config(
        hidden_size=128,
        intermediate_size=256,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=2,
        sliding_window=WINDOW,
        layer_types=["sliding_attention", "full_attention"] * 2,
        **_common(),
    )
    # Newer transformers keep the base by kind of layer, where SGLang does not look: it takes 10000.
    for parameters in config.rope_parameters.values():
        if isinstance(parameters, dict):
            parameters["rope_theta"] = 10000.0
    return config


LLAMA = TinyModel("llama", _llama)
QWEN2 = TinyModel("qwen2", _qwen2)
QWEN3 = TinyModel("qwen3", _qwen3)
QWEN2_MOE = TinyModel("qwen2_moe", _qwen2_moe)
QWEN3_MOE = TinyModel("qwen3_moe", _qwen3_moe)
DEEPSEEK_V2 = TinyModel("deepseek_v2", _deepseek_v2)
DEEPSEEK_V3 = TinyModel("deepseek_v3", _deepseek_v3)
OLMO3 = TinyModel("olmo3", _olmo3, seed=6)

"""The newest models stop where docs/models.md says: upstream needs CUDA or its own pool there.

A model that gets further than that fails here, so that the page and the map can follow.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.server.architectures import VOCABULARY
from tests.server.models import make_tokenizer
from tests.server.releases import release
from tests.server.server import ServerFailed, running, serve_command

pytestmark = [pytest.mark.server, pytest.mark.torch, pytest.mark.full]

COMMON: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "max_position_embeddings": 4096,
    "bos_token_id": 0,
    "eos_token_id": 0,
    "pad_token_id": 0,
    "tie_word_embeddings": False,
    "dtype": "float32",
    "hidden_act": "silu",
    "rms_norm_eps": 1e-6,
    "attention_bias": False,
    "moe_intermediate_size": 64,
    "n_routed_experts": 8,
    "n_shared_experts": 1,
    "num_experts_per_tok": 2,
    "norm_topk_prob": True,
    "routed_scaling_factor": 1.5,
    "num_nextn_predict_layers": 0,
    "topk_method": "noaux_tc",
    "rope_theta": 10000.0,
    "index_head_dim": 128,
    "kv_lora_rank": 512,
    "qk_rope_head_dim": 64,
    "q_lora_rank": 64,
    "intermediate_size": 256,
}
DEEPSEEK_V32: dict[str, Any] = {
    **COMMON,
    "architectures": ["DeepseekV32ForCausalLM"],
    "model_type": "deepseek_v32",
    "hidden_size": 128,
    "n_group": 2,
    "topk_group": 1,
    "first_k_dense_replace": 1,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "qk_nope_head_dim": 128,
    "v_head_dim": 128,
    "moe_layer_freq": 1,
    "scoring_func": "sigmoid",
    "index_n_heads": 4,
    "index_topk": 64,
}
DEEPSEEK_V4: dict[str, Any] = {
    **COMMON,
    "architectures": ["DeepseekV4ForCausalLM"],
    "model_type": "deepseek_v4",
    "hidden_size": 512,
    "n_group": 1,
    "topk_group": 1,
    "num_hidden_layers": 4,
    "num_attention_heads": 64,
    "num_key_value_heads": 1,
    "head_dim": 512,
    "qk_nope_head_dim": 448,
    "v_head_dim": 512,
    "o_groups": 8,
    "o_lora_rank": 64,
    "scoring_func": "sqrtsoftplus",
    "index_n_heads": 64,
    "index_topk": 512,
    "compress_rope_theta": 160000.0,
    "compress_ratios": [0, 4, 128, 4],
    "sliding_window": 128,
    "window_size": 128,
    "hc_mult": 4,
    "hc_sinkhorn_iters": 20,
    "hc_eps": 1e-6,
    "num_hash_layers": 1,
    "n_hash_layers": 1,
    "swiglu_limit": 10.0,
    "rope_scaling": {
        "type": "yarn",
        "factor": 16,
        "original_max_position_embeddings": 4096,
        "beta_fast": 32,
        "beta_slow": 1,
    },
}
GPT_OSS: dict[str, Any] = {
    **COMMON,
    "architectures": ["GptOssForCausalLM"],
    "model_type": "gpt_oss",
    "hidden_size": 128,
    "num_hidden_layers": 2,
    "num_local_experts": 8,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "sliding_window": 23,
    "layer_types": ["sliding_attention", "full_attention"],
}


@dataclass(frozen=True, slots=True)
class Stop:
    """Where a model stops: upstream's file, and what it says."""

    file: str
    message: str


# What is printed last before the end, by release. The weights are not FP8, so V4 is told so.
NO_CUDA = "Torch not compiled with CUDA enabled"
OWN_ALLOCATOR = "requires SWATokenToKVPoolAllocator"
NO_SEAM = "reached the DeepSeek-V4 KV pool"
OWN_BACKENDS = "GptOssForCausalLM requires one of"
STOPS: dict[tuple[str, str], Stop] = {
    ("deepseek_v32", "0.5.17"): Stop("srt/server_args.py", NO_CUDA),
    ("deepseek_v32", "0.5.19"): Stop("arg_groups/model_hook.py", NO_CUDA),
    ("deepseek_v32", "0.5.23"): Stop("arg_groups/model_hook.py", NO_CUDA),
    ("deepseek_v4", "0.5.17"): Stop("unified_cache/components/swa_component.py", OWN_ALLOCATOR),
    ("deepseek_v4", "0.5.19"): Stop("unified_cache/components/swa_component.py", OWN_ALLOCATOR),
    ("deepseek_v4", "0.5.23"): Stop("mem_cache/kv_cache_configurator.py", NO_SEAM),
    ("gpt_oss", "0.5.17"): Stop("srt/server_args.py", OWN_BACKENDS),
    ("gpt_oss", "0.5.19"): Stop("arg_groups/model_hook.py", OWN_BACKENDS),
    ("gpt_oss", "0.5.23"): Stop("arg_groups/model_hook.py", OWN_BACKENDS),
}
MODELS = {"deepseek_v32": DEEPSEEK_V32, "deepseek_v4": DEEPSEEK_V4, "gpt_oss": GPT_OSS}
ENVIRONMENT = {"SGLANG_OPT_FP8_WO_A_GEMM": "0"}


@pytest.mark.parametrize("name", MODELS)
def test_the_model_stops_where_the_page_says(name: str, tmp_path: Path) -> None:
    stop = STOPS.get((name, release()))
    if stop is None:
        pytest.skip(f"where {name} stops on SGLang {release()} is not recorded")
    text = log_of_the_stop(MODELS[name], tmp_path)
    assert stop.file in text, text[-3000:]
    assert stop.message in text, text[-3000:]


def log_of_the_stop(config: dict[str, Any], folder: Path, options: tuple[str, ...] = ()) -> str:
    """Start a model of this configuration, which must fail, and return what was printed."""
    model = folder / "model"
    model.mkdir()
    (model / "config.json").write_text(json.dumps(config), encoding="utf-8")
    make_tokenizer().save_pretrained(model)
    log = folder / "server" / "server.log"

    def give_up_early(seconds: float) -> None:
        # Upstream looks for a core dump for a minute before it ends.
        if "Scheduler hit an exception" in log.read_text(encoding="utf-8", errors="replace"):
            raise ServerFailed("the scheduler failed")

    # V4's pool for windows takes a tenth of the tokens and needs room for one request.
    arguments = ("--load-format", "dummy", "--max-total-tokens", "65536")
    with (
        pytest.raises(ServerFailed),
        running(
            lambda port, runs: serve_command(model, port, runs, options, arguments),
            log.parent,
            ENVIRONMENT,
            give_up_early,
        ),
    ):
        pass
    return log.read_text(encoding="utf-8", errors="replace")

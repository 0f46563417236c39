"""What our bindings do for a Llama on SGLang 0.5.19 in the simulator, written by hand.

A peer of `tokens.py`: the same kernels, attention backend and pools on the same simulated vendor
ops, under the same conditions, by a plugin as one would write it for this model alone: no document,
no generated text, nothing is read back, counted or written down.
"""

from __future__ import annotations

import os
from typing import Any

NAME = "handwritten_bindings"
BACKEND = "kunlun"
COMMON = "sglang.srt.utils.common"


def activate() -> str | None:
    """Entry point of the group `sglang.srt.platforms`."""
    if os.environ.get("SGLANG_PLATFORM") != NAME:
        return None
    from kunlun_adapt import simulator

    simulator.install()
    return f"{NAME}:HandwrittenPlatform"


def register() -> None:
    """Entry point of the group `sglang.srt.plugins`."""
    if os.environ.get("SGLANG_PLATFORM") != NAME:
        return
    from sglang.srt import server_args
    from sglang.srt.layers.attention import attention_registry
    from sglang.srt.plugins.hook_registry import HookRegistry, HookType

    allocation = "sglang.srt.mem_cache.allocation.get_last_loc"
    factory = "sglang.srt.layers.rotary_embedding.factory.get_rope_wrapper"
    HookRegistry.register(f"{COMMON}.support_triton", _support_triton, HookType.REPLACE)
    HookRegistry.register(f"{COMMON}.set_gpu_proc_affinity", _nothing, HookType.REPLACE)
    HookRegistry.register(allocation, _last_loc, HookType.REPLACE)
    HookRegistry.register(factory, _without_device, HookType.AROUND)
    server_args.ATTENTION_BACKEND_CHOICES.append(BACKEND)
    attention_registry.register_attention_backend(BACKEND)(_backend)
    _bind()


def _bind() -> None:
    """Give upstream's layers their forwards, and our own classes their operators."""
    import by_hand
    from sglang.srt.layers.activation import SiluAndMul
    from sglang.srt.layers.layernorm import RMSNorm
    from sglang.srt.layers.rotary_embedding.base import RotaryEmbedding
    from sglang.srt.layers.rotary_embedding.rope_variant import Llama3RotaryEmbedding

    from kunlun_adapt.golden import activation as golden_activation
    from kunlun_adapt.golden import norm as golden_norm
    from kunlun_adapt.golden import rope as golden_rope
    from kunlun_adapt.kernels import activation, norm, rope
    from kunlun_adapt.kernels.attention import paged
    from kunlun_adapt.kernels.kv_cache import store
    from kunlun_adapt.runtime import operators

    turn = by_hand.rotary_embedding(rope.rotary_embedding, golden_rope.rotary_embedding)
    for cls, forward in (
        (RMSNorm, by_hand.rms_norm(norm.rmsnorm, norm.add_rmsnorm, golden_norm.rms_norm)),
        (SiluAndMul, by_hand.silu_and_mul(activation.swiglu, golden_activation.silu_and_mul)),
        (RotaryEmbedding, turn),
        (Llama3RotaryEmbedding, turn),
    ):
        cls.register_oot_forward(cls, forward, "native")
    served = {
        "paged_prefill_attention": by_hand.paged_prefill(paged.prefill_raw, paged.prefill_paged),
        "paged_decode_attention": by_hand.paged_decode(paged.decode_speculative),
        "store_kv_cache": by_hand.store_kv_cache(store.store_flash),
    }
    operators.operator = served.__getitem__


def _backend(runner: Any) -> Any:
    from kunlun_adapt.kernels.attention.backend import create_backend

    return create_backend(runner)


def _support_triton(backend: str) -> bool:
    return False


def _nothing(*args: Any, **kwargs: Any) -> None:
    """Leave the process on every core, where upstream would pin it."""


def _last_loc(req_to_token: Any, req_pool_indices_tensor: Any, prefix_lens_tensor: Any) -> Any:
    import torch

    last = (prefix_lens_tensor - 1).clamp(min=0)
    rows = req_to_token[req_pool_indices_tensor, last].to(prefix_lens_tensor.dtype)
    return torch.where(prefix_lens_tensor > 0, rows, -1)


def _without_device(original: Any, *args: Any, **kwargs: Any) -> Any:
    return original(*args, **{**kwargs, "device": None})


def __getattr__(name: str) -> Any:
    """Make the platform class when upstream asks for it: it derives from upstream's."""
    if name != "HandwrittenPlatform":
        raise AttributeError(name)
    from sglang.srt.platforms.device_mixin import PlatformEnum
    from sglang.srt.platforms.interface import SRTPlatform

    from kunlun_adapt.simulator.memory import available_memory

    class HandwrittenPlatform(SRTPlatform):
        _enum = PlatformEnum.OOT
        device_name = "kunlun"
        device_type = "cpu"

        def get_dispatch_key_name(self) -> str:
            return "native"

        def get_torch_distributed_backend_str(self) -> str:
            return "gloo"

        def get_default_attention_backend(self) -> str:
            return BACKEND

        def get_mha_kv_pool_cls(self) -> type:
            from kunlun_adapt.kernels.kv_cache.pools import KunlunMHATokenToKVPool

            return KunlunMHATokenToKVPool

        def get_paged_allocator_cls(self) -> type:
            from kunlun_adapt.kernels.kv_cache.allocator import KunlunPagedTokenToKVPoolAllocator

            return KunlunPagedTokenToKVPoolAllocator

        def get_device(self, device_id: int = 0) -> str:
            return "cpu"

        def get_device_name(self, device_id: int = 0) -> str:
            return "cpu"

        def get_device_total_memory(self, device_id: int = 0) -> int:
            return available_memory()[1]

        def get_current_memory_usage(self, device: Any = None) -> float:
            available, total = available_memory()
            return float(total - available)

        def get_available_memory(self, device_id: int = 0) -> tuple[int, int]:
            return available_memory()

        def support_cuda_graph(self) -> bool:
            return False

        def support_piecewise_cuda_graph(self) -> bool:
            return False

        def apply_server_args_defaults(self, server_args: Any) -> None:
            if server_args.attention_backend in (None, "intel_amx"):
                server_args.attention_backend = BACKEND

    globals()[name] = HandwrittenPlatform
    return HandwrittenPlatform

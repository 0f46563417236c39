"""The least that SGLang 0.5.19 needs of a platform to serve Llama on a CPU, written by hand.

The peer of `tokens.py`: nothing is checked, read back or counted, and upstream's own torch code
computes.
"""

from __future__ import annotations

import os
from typing import Any


def activate() -> str | None:
    """Entry point of the group `sglang.srt.platforms`."""
    chosen = os.environ.get("SGLANG_PLATFORM") == "handwritten"
    return "handwritten_plugin:HandwrittenPlatform" if chosen else None


def register() -> None:
    """Entry point of the group `sglang.srt.plugins`."""
    from sglang.srt.plugins.hook_registry import HookRegistry, HookType

    if os.environ.get("SGLANG_PLATFORM") != "handwritten":
        return
    # For device "cpu" upstream goes to a builder that knows one scaling, on kernels of no wheel.
    factory = "sglang.srt.layers.rotary_embedding.factory.get_rope_wrapper"
    HookRegistry.register(factory, _without_device, HookType.AROUND)


def _without_device(original: Any, *args: Any, **kwargs: Any) -> Any:
    return original(*args, **{**kwargs, "device": None})


def _token_allocator(size: int, page_size: int, **options: Any) -> Any:
    """Make upstream's allocator of single tokens, which is in torch; that of pages is in Triton."""
    from sglang.srt.mem_cache.allocator.token import TokenToKVPoolAllocator

    if page_size != 1:
        raise ValueError(f"page size {page_size}: this platform has pages of one token")
    return TokenToKVPoolAllocator(size, **options)


def __getattr__(name: str) -> Any:
    """Make the platform class when upstream asks for it: it derives from upstream's."""
    if name != "HandwrittenPlatform":
        raise AttributeError(name)
    import psutil
    from sglang.srt.platforms.device_mixin import PlatformEnum
    from sglang.srt.platforms.interface import SRTPlatform

    class HandwrittenPlatform(SRTPlatform):
        _enum = PlatformEnum.OOT
        device_name = "handwritten"
        device_type = "cpu"

        def get_dispatch_key_name(self) -> str:
            return "native"

        def get_torch_distributed_backend_str(self) -> str:
            return "gloo"

        def get_default_attention_backend(self) -> str:
            return "torch_native"

        def get_mha_kv_pool_cls(self) -> type:
            from sglang.srt.mem_cache.memory_pool import MHATokenToKVPool

            return MHATokenToKVPool

        def get_paged_allocator_cls(self) -> Any:
            return _token_allocator

        def get_device(self, device_id: int = 0) -> str:
            return "cpu"

        def get_device_name(self, device_id: int = 0) -> str:
            return "cpu"

        def get_device_total_memory(self, device_id: int = 0) -> int:
            return int(psutil.virtual_memory().total)

        def get_current_memory_usage(self, device: Any = None) -> float:
            return float(psutil.Process().memory_info().rss)

        def get_available_memory(self, device_id: int = 0) -> tuple[int, int]:
            memory = psutil.virtual_memory()
            return int(memory.available), int(memory.total)

        def support_cuda_graph(self) -> bool:
            return False

        def support_piecewise_cuda_graph(self) -> bool:
            return False

    globals()[name] = HandwrittenPlatform
    return HandwrittenPlatform

"""Hooks that make upstream treat the backend "kunlun" as what it is."""

from __future__ import annotations

from typing import Any


def support_triton(call: Any) -> bool:
    """No attention backend of this platform may launch Triton kernels.

    Upstream counts every backend name that it does not know as capable.
    """
    return False


def mla_forward_method(attn: Any, forward_batch: Any) -> Any:
    """Latent models run absorbed in every phase (a handler for upstream's registry).

    Without a handler upstream falls back to Triton's, which expands prefill to plain heads
    and writes the cache with a Triton kernel.
    """
    from sglang.srt.models.deepseek_common.attention_forward_methods.forward_methods import (
        AttnForwardMethod,
    )

    return AttnForwardMethod.MLA

"""Key/value pools: upstream's classes, with the vendor's cache layout and writes.

Upstream asks the platform for these classes and constructs them with the keyword
arguments of the in-tree pools, so their signatures stay upstream's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from sglang.srt.mem_cache.memory_pool import (
    DSATokenToKVPool,
    MHATokenToKVPool,
    MLATokenToKVPool,
    unwrap_write_loc,
)
from sglang.srt.runtime_context import get_exec
from torch import Tensor

from kunlun_adapt.kernels.attention import backend_name
from kunlun_adapt.runtime.operators import operator


def _read_by_us() -> bool:
    """Whether every phase of this server runs on our attention backend."""
    kernel = get_exec().kernel
    chosen = {
        kernel.attention_backend,
        kernel.prefill_attention_backend,
        kernel.decode_attention_backend,
    }
    return chosen - {None} == {backend_name()}


class KunlunMHATokenToKVPool(MHATokenToKVPool):
    """Paged key and value buffers ``[blocks, kv_heads, page, head_dim]`` for each layer.

    The layout is upstream's own "hnd", so its slot moves, sizes and refusals (CPU offload,
    disaggregation) hold without change. Block 0 takes the writes of padding tokens. Where
    another attention backend reads the pool, it stays as upstream lays it out.
    """

    _store: Callable[..., Any] | None = None

    def _create_buffers(self) -> None:
        if _read_by_us():
            self._lay_out()
        super()._create_buffers()

    def _lay_out(self) -> None:
        slots = self.size + self.page_size
        if slots % self.page_size:
            raise ValueError(
                f"the paged cache needs whole pages: {self.size} tokens with page size "
                f"{self.page_size}; choose --max-total-tokens as a multiple of --page-size"
            )
        self.use_hnd = True
        self.kv_cache_layout = "hnd"
        self.num_pages = slots // self.page_size
        self._store = operator("store_kv_cache")

    def set_kv_buffer(
        self,
        layer: Any,
        loc_info: Any,
        cache_k: Tensor,
        cache_v: Tensor,
        k_scale: Tensor | float | None = None,
        v_scale: Tensor | float | None = None,
        layer_id_override: int | None = None,
        dcp_kv_mask: Tensor | None = None,
    ) -> None:
        """Write ``cache_k``/``cache_v`` ``[tokens, kv_heads, dim]`` at the slots of ``loc_info``.

        Caches of another layout or dtype, quantized ones and decode context parallelism have
        no vendor write and go the in-tree way, which serves or refuses them.
        """
        converts = cache_k.dtype != self.dtype or self.store_dtype != self.dtype
        in_tree = converts or self.is_quantized_kv_cache or dcp_kv_mask is not None
        store = self._store
        if store is None or in_tree:
            super().set_kv_buffer(
                layer,
                loc_info,
                cache_k,
                cache_v,
                k_scale,
                v_scale,
                layer_id_override=layer_id_override,
                dcp_kv_mask=dcp_kv_mask,
            )
            return
        slots, _, _ = unwrap_write_loc(loc_info)
        layer_id = layer.layer_id if layer_id_override is None else layer_id_override
        index = layer_id - self.start_layer
        store(
            cache_k.view(-1, self.head_num, self.head_dim),
            cache_v.view(-1, self.head_num, self.v_head_dim),
            self.k_buffer[index],
            self.v_buffer[index],
            slots,
        )


class KunlunMLATokenToKVPool(MLATokenToKVPool):
    """Latent rows ``[slots, 1, rank + rope]`` for each layer, written by the vendor.

    Up to 0.5.21 upstream passes ``index_head_dim`` to out-of-tree pools of every latent
    model, always None for those without an indexer; the in-tree class does not know it.
    """

    def __init__(self, *args: Any, index_head_dim: int | None = None, **kwargs: Any) -> None:
        if index_head_dim is not None:
            raise ValueError(
                f"index_head_dim={index_head_dim}: a model with an indexer needs the dsa pool"
            )
        self._store = operator("store_mla_cache")
        super().__init__(*args, **kwargs)

    def set_kv_buffer(
        self,
        layer: Any,
        loc_info: Any,
        cache_k: Tensor,
        cache_v: Tensor,
        layer_id_override: int | None = None,
    ) -> None:
        """Write whole rows ``cache_k`` ``[tokens, 1, rank + rope]``; ``cache_v`` is a part."""
        slots, _, _ = unwrap_write_loc(loc_info)
        rank = self.kv_lora_rank
        self._write(layer, slots, cache_k[..., :rank], cache_k[..., rank:], layer_id_override)

    def set_mla_kv_buffer(
        self,
        layer: Any,
        loc: Any,
        cache_k_nope: Tensor,
        cache_k_rope: Tensor,
        layer_id_override: int | None = None,
    ) -> None:
        """Write rows given as latent ``[tokens, 1, rank]`` and rope ``[tokens, 1, rope]``."""
        slots, _, _ = unwrap_write_loc(loc)
        self._write(layer, slots, cache_k_nope, cache_k_rope, layer_id_override)

    def get_mla_kv_buffer(
        self, layer: Any, loc: Tensor, dst_dtype: torch.dtype | None = None
    ) -> tuple[Tensor, Tensor]:
        """The latent and rope parts of the rows at ``loc``, each ``[tokens, 1, width]``."""
        rows = self.get_key_buffer(layer.layer_id).index_select(0, loc.long())
        rows = rows.to(dst_dtype or self.dtype)
        latent, rope = rows.split([self.kv_lora_rank, self.qk_rope_head_dim], dim=-1)
        return latent.contiguous(), rope.contiguous()

    def _write(
        self, layer: Any, slots: Tensor, latent: Tensor, rope: Tensor | None, override: int | None
    ) -> None:
        layer_id = layer.layer_id if override is None else override
        buffer = self.kv_buffer[layer_id - self.start_layer]
        latent = latent.reshape(-1, self.kv_lora_rank).to(self.dtype)
        if rope is not None:
            rope = rope.reshape(latent.shape[0], -1).to(self.dtype)
            rope = rope if rope.shape[1] else None
        self._store(latent, rope, buffer.view(-1, self.page_size, self.kv_cache_dim), slots)


class KunlunDSATokenToKVPool(DSATokenToKVPool):
    """Latent rows and indexer keys of sparse-attention models, as upstream keeps them."""

"""Reference writes into the paged key/value caches; exact, no arithmetic."""

from __future__ import annotations

import torch
from torch import Tensor


def scatter_heads(cache: Tensor, rows: Tensor, slots: Tensor) -> None:
    """Write ``rows`` ``[tokens, heads, dim]`` into ``cache`` ``[blocks, heads, page, dim]``.

    Slot ``s`` lies in block ``s // page`` at offset ``s % page``. Every index is given
    explicitly because an indexed write with a slice is refused by the device.
    """
    page = cache.shape[2]
    slots = slots.long()
    heads = torch.arange(cache.shape[1], device=cache.device)
    index = ((slots // page)[:, None], heads[None, :], (slots % page)[:, None])
    cache.index_put_(index, rows.to(cache.dtype))


def store_kv_cache(
    key: Tensor, value: Tensor, key_cache: Tensor, value_cache: Tensor, slots: Tensor
) -> None:
    """Write new key and value rows into the paged cache.

    ``key`` ``[tokens, kv_heads, dim]``, ``value`` ``[tokens, kv_heads, v_dim]``, caches
    ``[blocks, kv_heads, page, dim or v_dim]``, ``slots`` integer ``[tokens]``.
    """
    scatter_heads(key_cache, key, slots)
    scatter_heads(value_cache, value, slots)


def store_mla_cache(latent: Tensor, rope: Tensor | None, kv_cache: Tensor, slots: Tensor) -> None:
    """Write rows ``[latent | rope]`` into the paged latent cache.

    ``latent`` ``[tokens, rank]``, ``rope`` ``[tokens, rope_dim]`` or None where the model
    has no rotary part, ``kv_cache`` contiguous ``[blocks, page, rank + rope_dim]``,
    ``slots`` integer ``[tokens]``.
    """
    row = latent if rope is None else torch.cat([latent, rope], dim=-1)
    flat = kv_cache.view(-1, kv_cache.shape[-1])
    flat.index_copy_(0, slots.long(), row.to(kv_cache.dtype))

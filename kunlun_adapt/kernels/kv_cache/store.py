"""Adapters from the cache-write operators to the vendor's kernels.

Parameters are those of :mod:`kunlun_adapt.golden.kv_cache`; the caches are written in
place and nothing is returned.
"""

from __future__ import annotations

import kunlun_ops
import torch
from torch import Tensor


def store_flash(
    key: Tensor,
    value: Tensor,
    key_cache: Tensor,
    value_cache: Tensor,
    slots: Tensor,
    *,
    blhd_layout: bool,
) -> None:
    """Write key and value rows by ``kunlun_ops.reshape_and_cache_flash``.

    ``blhd_layout`` False names the layout ``[blocks, kv_heads, page, dim]``.
    """
    kunlun_ops.reshape_and_cache_flash(
        key, value, key_cache, value_cache, slots.to(torch.int32), blhd_layout
    )


def store_reshape(
    key: Tensor, value: Tensor, key_cache: Tensor, value_cache: Tensor, slots: Tensor
) -> None:
    """Write key and value rows by the eight-argument ``kunlun_ops.reshape_and_cache``."""
    kunlun_ops.reshape_and_cache(
        key, value, key_cache, value_cache, slots.to(torch.int32), None, None, 0
    )


def store_mla_concat(latent: Tensor, rope: Tensor, kv_cache: Tensor, slots: Tensor) -> None:
    """Write latent rows by ``kunlun_ops.concat_and_cache_mla`` (16-bit caches only)."""
    kunlun_ops.concat_and_cache_mla(latent, rope, slots, kv_cache)


def store_mla_scatter(latent: Tensor, rope: Tensor, kv_cache: Tensor, slots: Tensor) -> None:
    """Write latent rows by ``kunlun_ops.set_mla_kv_buffer_triton``."""
    kunlun_ops.set_mla_kv_buffer_triton(
        kv_cache.view(-1, 1, kv_cache.shape[-1]), slots, latent, rope
    )

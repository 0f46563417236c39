"""Adapters from the paged attention operators to the vendor's kernels.

Parameters are those of :mod:`kunlun_adapt.golden.attention`; each function writes and
returns ``out``.
"""

from __future__ import annotations

import math

import kunlun_ops
import torch
from torch import Tensor
from torch.nn.functional import pad


def prefill_raw(
    q: Tensor,
    key: Tensor,
    value: Tensor,
    key_cache: Tensor,
    value_cache: Tensor,
    out: Tensor,
    block_table: Tensor,
    q_lod_cpu: Tensor,
    q_lod: Tensor,
    kv_lod_cpu: Tensor,
    kv_lod: Tensor,
    q_total: int,
    kv_total: int,
    scale: float,
    window: int,
) -> Tensor:
    """Prefill without a cached prefix: ``kunlun_ops.prefill_attention`` on the new rows.

    The kernel wants values as wide as queries; narrower ones are padded with zeros and
    the result is cut back.
    """
    dim, v_dim = q.shape[-1], value.shape[-1]
    lods = (q_lod_cpu, q_lod, q_lod_cpu, q_lod)
    if v_dim == dim:
        _prefill(q, key, value, out, block_table, *lods, scale, window, False)
        return out
    wide = torch.empty_like(q)
    value = pad(value, (0, dim - v_dim))
    _prefill(q, key, value, wide, block_table, *lods, scale, window, False)
    out[:q_total].copy_(wide[:q_total, :, :v_dim])
    return out


def prefill_paged(
    q: Tensor,
    key: Tensor,
    value: Tensor,
    key_cache: Tensor,
    value_cache: Tensor,
    out: Tensor,
    block_table: Tensor,
    q_lod_cpu: Tensor,
    q_lod: Tensor,
    kv_lod_cpu: Tensor,
    kv_lod: Tensor,
    q_total: int,
    kv_total: int,
    scale: float,
    window: int,
) -> Tensor:
    """Prefill over a cached prefix: ``kunlun_ops.prefill_attention`` on the paged cache."""
    _prefill(
        q,
        key_cache,
        value_cache,
        out,
        block_table,
        q_lod_cpu,
        q_lod,
        kv_lod_cpu,
        kv_lod,
        scale,
        window,
        True,
    )
    return out


def _prefill(
    q: Tensor,
    key: Tensor,
    value: Tensor,
    out: Tensor,
    block_table: Tensor,
    q_lod_cpu: Tensor,
    q_lod: Tensor,
    kv_lod_cpu: Tensor,
    kv_lod: Tensor,
    scale: float,
    window: int,
    paged: bool,
) -> None:
    kunlun_ops.prefill_attention(
        q=q,
        k=key,
        v=value,
        out=out,
        is_causal=True,
        is_prefix_cache=paged,
        # The kernel multiplies by 1/sqrt(dim) itself.
        alpha=scale * math.sqrt(q.shape[-1]),
        block_table=block_table,
        context_qlen_lod_cpu=q_lod_cpu,
        context_qlen_lod_xpu=q_lod,
        context_kvlen_lod_cpu=kv_lod_cpu,
        context_kvlen_lod_xpu=kv_lod,
        alibi_slopes=None,
        softmax_lse=None,
        swa_left=window,
        swa_right=-1 if window < 0 else 0,
        sink=None,
    )


def decode_speculative(
    q: Tensor,
    key_cache: Tensor,
    value_cache: Tensor,
    out: Tensor,
    block_table: Tensor,
    seq_lens_cpu: Tensor,
    seq_lens: Tensor,
    max_seq_len: int,
    scale: float,
    window: int,
) -> Tensor:
    """Decode of one or more tokens per request: ``kunlun_ops.speculative_attention``."""
    batch, q_len, heads, dim = q.shape
    kunlun_ops.speculative_attention(
        out=out,
        q=q,
        k_cache=key_cache,
        v_cache=value_cache,
        context_lens_cpu=seq_lens_cpu,
        context_lens_xpu=seq_lens,
        batch_num=batch,
        qlen=q_len,
        max_context_len=max_seq_len,
        head_num=heads,
        head_dim=dim,
        # Always explicit: 0.0 would mean the kernel's own 1/sqrt(dim).
        scale=scale,
        kv_head_num=value_cache.shape[1],
        block_size=key_cache.shape[2],
        max_num_blocks_per_seq=block_table.shape[1],
        max_window_size=window,
        block_tables=block_table,
        sink=None,
    )
    return out


def decode_paged(
    q: Tensor,
    key_cache: Tensor,
    value_cache: Tensor,
    out: Tensor,
    block_table: Tensor,
    seq_lens_cpu: Tensor,
    seq_lens: Tensor,
    max_seq_len: int,
    scale: float,
    window: int,
) -> Tensor:
    """Decode of one token per request: ``kunlun_ops.paged_attention``.

    This form has no scale and no window argument and its value width is fixed at 128, so
    the tier admits only head dimension 128 with the default scale and no window.
    """
    kunlun_ops.paged_attention(
        out=out.squeeze(1),
        x=q.squeeze(1),
        k_cache=key_cache,
        v_cache=value_cache,
        block_tables=block_table,
        context_lens_cpu=seq_lens_cpu,
        context_lens_xpu=seq_lens,
        is_context=False,
        is_causal=True,
        vo_head_dim=128,
    )
    return out

"""Simulated ``kunlun_ops`` attention: the vendor's calls, computed with the golden.

Signatures, including the parameters that a call must give but that change nothing here,
are the vendor's. What a call may look like is in ``contracts/attention.yaml``.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from kunlun_adapt.golden.attention import attend, gather_pages
from kunlun_adapt.golden.mla import gather_rows
from kunlun_adapt.simulator.contract import simulated


def _attend(
    query: Tensor, key: Tensor, value: Tensor, scale: float, causal: bool, window: int
) -> Tensor:
    if causal:
        return attend(query, key, value, scale, window)
    return torch.cat([attend(row[None], key, value, scale) for row in query])


@simulated("kunlun_ops.prefill_attention")
def prefill_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    out: Tensor,
    is_causal: bool,
    is_prefix_cache: bool,
    alpha: float,
    block_table: Tensor | None,
    context_qlen_lod_cpu: Tensor,
    context_qlen_lod_xpu: Tensor,
    context_kvlen_lod_cpu: Tensor,
    context_kvlen_lod_xpu: Tensor,
    alibi_slopes: Tensor | None = None,
    softmax_lse: Tensor | None = None,
    swa_left: int = -1,
    swa_right: int = -1,
    sink: Tensor | None = None,
) -> None:
    """Variable-length attention over new rows, or over the paged cache.

    The kernel multiplies ``alpha`` by its own ``1/sqrt(dim)``. A token sees ``swa_left`` tokens
    before its own, as by flash attention's window; no public caller says whether its own counts.
    """
    scale = alpha / math.sqrt(q.shape[-1])
    starts, ends = context_qlen_lod_cpu.tolist(), context_kvlen_lod_cpu.tolist()
    for index in range(len(starts) - 1):
        begin, end = starts[index], starts[index + 1]
        if begin == end:
            continue
        if is_prefix_cache:
            assert block_table is not None
            length = ends[index + 1] - ends[index]
            key = gather_pages(k, block_table[index], length)
            value = gather_pages(v, block_table[index], length)
        else:
            key, value = k[ends[index] : ends[index + 1]], v[ends[index] : ends[index + 1]]
        out[begin:end].copy_(_attend(q[begin:end], key, value, scale, is_causal, swa_left))


@simulated("kunlun_ops.speculative_attention")
def speculative_attention(
    out: Tensor,
    q: Tensor,
    k_cache: Tensor,
    v_cache: Tensor,
    context_lens_cpu: Tensor,
    context_lens_xpu: Tensor,
    batch_num: int,
    qlen: int,
    max_context_len: int,
    head_num: int,
    head_dim: int,
    scale: float,
    kv_head_num: int,
    block_size: int,
    max_num_blocks_per_seq: int,
    max_window_size: int,
    block_tables: Tensor,
    sink: Tensor | None = None,
    qlod_cpu: Tensor | None = None,
    qlod_xpu: Tensor | None = None,
) -> None:
    """Paged attention of the last ``qlen`` tokens of each request; scale 0.0 is 1/sqrt(dim).

    ``max_window_size`` is taken for the number that prefill takes, as callers pass the same.
    """
    factor = scale or 1 / math.sqrt(head_dim)
    query = q.view(batch_num, qlen, head_num, head_dim)
    result = out.view(batch_num, qlen, head_num, v_cache.shape[-1])
    for index, length in enumerate(context_lens_cpu.tolist()):
        key = gather_pages(k_cache, block_tables[index], length)
        value = gather_pages(v_cache, block_tables[index], length)
        result[index].copy_(attend(query[index], key, value, factor, max_window_size))


@simulated("kunlun_ops.paged_attention")
def paged_attention(
    out: Tensor,
    x: Tensor,
    k_cache: Tensor,
    v_cache: Tensor | None,
    block_tables: Tensor,
    context_lens_cpu: Tensor,
    context_lens_xpu: Tensor,
    is_context: bool,
    is_causal: bool,
    vo_head_dim: int,
    kv_lora_rank: int | None = None,
    qk_rope_head_dim: int | None = None,
    softmax_scale: float | None = None,
    q_r: Tensor | None = None,
) -> None:
    """One token per request over the paged cache: plain heads, or latent with a rank given."""
    heads, dim = x.shape[-2:]
    query = x.reshape(-1, 1, heads, dim)
    lengths = context_lens_cpu.tolist()
    if kv_lora_rank is None:
        assert v_cache is not None
        result = out.view(-1, 1, heads, vo_head_dim)
        for index, length in enumerate(lengths):
            key = gather_pages(k_cache, block_tables[index], length)
            value = gather_pages(v_cache, block_tables[index], length)
            result[index].copy_(attend(query[index], key, value, 1 / math.sqrt(dim)))
        return
    assert softmax_scale is not None
    result = out.view(-1, 1, heads, kv_lora_rank)
    for index, length in enumerate(lengths):
        rows = gather_rows(k_cache.squeeze(1), block_tables[index], length)[:, None, :]
        mixed = attend(query[index], rows, rows[..., :kv_lora_rank], softmax_scale)
        result[index].copy_(mixed)

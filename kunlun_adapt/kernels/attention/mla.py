"""Adapters from the latent attention operators to the vendor's kernels.

Parameters are those of :mod:`kunlun_adapt.golden.mla`; each function writes and returns
``out``.
"""

from __future__ import annotations

import kunlun_ops
import torch
from torch import Tensor


def slot_indices(block_table: Tensor, page: int, width: int, visible: Tensor) -> Tensor:
    """The first ``visible[row]`` physical slots of each row, -1 beyond: int32 ``[rows, width]``.

    ``block_table`` is int32 ``[rows, max_blocks]`` with ``max_blocks * page >= width``;
    ``visible`` is integer ``[rows]``. Stays on the device.
    """
    position = torch.arange(width, device=block_table.device, dtype=torch.int32)
    blocks = block_table.index_select(1, position // page)
    slots = blocks * page + position % page
    return torch.where(position[None, :] < visible[:, None], slots, -1).to(torch.int32)


def token_owners(q_lod_cpu: Tensor, kv_lod_cpu: Tensor) -> tuple[Tensor, Tensor]:
    """For each new token its request and the number of rows it sees, on the host.

    Both results are ``[tokens]``: int64 request numbers and int32 counts, the token itself
    included.
    """
    q_lens = q_lod_cpu.diff().long()
    kv_lens = kv_lod_cpu.diff()
    owner = torch.repeat_interleave(torch.arange(q_lens.numel()), q_lens)
    position = torch.arange(owner.numel(), dtype=torch.int32) - q_lod_cpu[owner]
    prefix = kv_lens - q_lens.to(kv_lens.dtype)
    return owner, (prefix[owner] + position + 1).to(torch.int32)


def decode_indexed(
    q: Tensor,
    kv_cache: Tensor,
    out: Tensor,
    block_table: Tensor,
    seq_lens_cpu: Tensor,
    seq_lens: Tensor,
    max_seq_len: int,
    scale: float,
) -> Tensor:
    """Decode of up to two tokens per request: ``kunlun_ops.fwd_kvcache_mla``.

    The kernel knows no block table; the physical slots of each request go in as
    ``indices``, which also carry the causal limit of each query token.
    """
    batch, q_len, heads, width = q.shape
    page = kv_cache.shape[1]
    offset = torch.arange(1 - q_len, 1, device=q.device, dtype=torch.int32)
    visible = (seq_lens[:, None] + offset[None, :]).flatten()
    rows = block_table.repeat_interleave(q_len, dim=0) if q_len > 1 else block_table
    indices = slot_indices(rows, page, max_seq_len, visible).view(batch, q_len, max_seq_len)
    logits = torch.zeros(batch, q_len, heads, dtype=torch.float32, device=q.device)
    kunlun_ops.fwd_kvcache_mla(
        q_c=q,
        kv_cache=kv_cache.view(-1, width),
        indices=indices,
        kv_lod_cpu=seq_lens_cpu,
        out=out.zero_(),
        max_logits=logits,
        p_sums=torch.zeros_like(logits),
        softmax_scale=scale,
        max_seq_kv=max_seq_len,
        q_r=None,
        pe_cache=None,
        use_xfa_boost=False,
        kv_lod_xpu=seq_lens,
    )
    return out


def decode_paged(
    q: Tensor,
    kv_cache: Tensor,
    out: Tensor,
    block_table: Tensor,
    seq_lens_cpu: Tensor,
    seq_lens: Tensor,
    max_seq_len: int,
    scale: float,
) -> Tensor:
    """Decode of one token per request: the latent form of ``kunlun_ops.paged_attention``."""
    _paged(q, kv_cache, out, block_table, seq_lens_cpu, seq_lens, scale)
    return out


def prefill_indexed(
    q: Tensor,
    kv_cache: Tensor,
    out: Tensor,
    block_table: Tensor,
    q_lod_cpu: Tensor,
    q_lod: Tensor,
    kv_lod_cpu: Tensor,
    kv_lod: Tensor,
    max_seq_len: int,
    scale: float,
) -> Tensor:
    """Prefill over the latent cache: ``kunlun_ops.sparse_prefill_fwd_opt`` with all slots.

    Each query token gets the slots it may see as its index row, so "sparse" here selects
    everything.
    """
    owner, visible = token_owners(q_lod_cpu, kv_lod_cpu)
    tokens = owner.numel()
    rows = block_table.index_select(0, owner.to(q.device, non_blocking=True))
    limits = visible.to(q.device, non_blocking=True)
    indices = slot_indices(rows, kv_cache.shape[1], max_seq_len, limits)
    logits = torch.zeros(tokens, q.shape[1], dtype=torch.float32, device=q.device)
    kunlun_ops.sparse_prefill_fwd_opt(
        q=q[:tokens],
        kv=kv_cache.view(-1, kv_cache.shape[-1]),
        indices=indices[:, None, :],
        out=out[:tokens].zero_(),
        max_logits=logits,
        lse=torch.zeros_like(logits),
        sm_scale=scale,
        qlod_cpu=q_lod_cpu,
        qlod_xpu=q_lod,
        kvlod_cpu=kv_lod_cpu,
        kvlod_xpu=kv_lod,
        d_v=out.shape[-1],
        is_causal=True,
        use_xfa_boost=False,
    )
    return out


def prefill_by_token(
    q: Tensor,
    kv_cache: Tensor,
    out: Tensor,
    block_table: Tensor,
    q_lod_cpu: Tensor,
    q_lod: Tensor,
    kv_lod_cpu: Tensor,
    kv_lod: Tensor,
    max_seq_len: int,
    scale: float,
) -> Tensor:
    """Prefill as a decode batch with one entry per new token.

    Token ``i`` of a request sees the rows up to itself, which is what a decode of a
    sequence of that length computes.
    """
    owner, visible = token_owners(q_lod_cpu, kv_lod_cpu)
    tokens = owner.numel()
    rows = block_table.index_select(0, owner.to(q.device, non_blocking=True))
    lens = visible.to(q.device, non_blocking=True)
    _paged(q[:tokens, None], kv_cache, out[:tokens, None], rows, visible, lens, scale)
    return out


def _paged(
    q: Tensor,
    kv_cache: Tensor,
    out: Tensor,
    block_table: Tensor,
    seq_lens_cpu: Tensor,
    seq_lens: Tensor,
    scale: float,
) -> None:
    rank = out.shape[-1]
    kunlun_ops.paged_attention(
        out=out,
        x=q,
        k_cache=kv_cache.unsqueeze(1),
        v_cache=None,
        block_tables=block_table,
        context_lens_cpu=seq_lens_cpu,
        context_lens_xpu=seq_lens,
        is_context=False,
        is_causal=True,
        vo_head_dim=-1,
        kv_lora_rank=rank,
        qk_rope_head_dim=q.shape[-1] - rank,
        softmax_scale=scale,
        q_r=q,
    )

"""Simulated ``kunlun_ops`` latent attention and latent cache writes.

The indexed kernels take physical slots, so they see the cache as a flat list of rows. What
a call may look like is in ``contracts/mla.yaml``.
"""

from __future__ import annotations

import torch
from torch import Tensor

from kunlun_adapt.golden.attention import attend
from kunlun_adapt.golden.kv_cache import store_mla_cache
from kunlun_adapt.simulator.contract import simulated


def _selected(
    query: Tensor, cache: Tensor, indices: Tensor, rank: int, scale: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Attention of one token ``[heads, width]`` over the rows that ``indices`` names.

    Returns the mixed rows ``[heads, rank]``, and per head the largest score and the sum of
    exponentials relative to it, both ``[heads]`` in natural-log terms.
    """
    chosen = indices[(indices >= 0) & (indices < cache.shape[0])].long()
    rows = cache[chosen]
    mixed = attend(query[None], rows[:, None, :], rows[:, None, :rank], scale)[0]
    scores = query.float() @ rows.float().T * scale
    largest = scores.max(dim=-1).values
    return mixed, largest, torch.exp(scores - largest[:, None]).sum(dim=-1)


@simulated("kunlun_ops.fwd_kvcache_mla")
def fwd_kvcache_mla(
    q_c: Tensor,
    kv_cache: Tensor,
    indices: Tensor,
    kv_lod_cpu: Tensor,
    out: Tensor,
    max_logits: Tensor,
    p_sums: Tensor,
    softmax_scale: float,
    max_seq_kv: int,
    q_r: Tensor | None = None,
    pe_cache: Tensor | None = None,
    use_xfa_boost: bool = False,
    kv_lod_xpu: Tensor | None = None,
) -> None:
    """Latent decode over the slots in ``indices`` ``[batch, qlen, topk]``, -1 ignored."""
    rank = out.shape[-1]
    for index, length in enumerate(kv_lod_cpu.tolist()):
        if length == 0:
            continue
        for token in range(q_c.shape[1]):
            at = (index, token)
            out[at], max_logits[at], p_sums[at] = _selected(
                q_c[at], kv_cache, indices[at], rank, softmax_scale
            )


@simulated("kunlun_ops.sparse_prefill_fwd_opt")
def sparse_prefill_fwd_opt(
    q: Tensor,
    kv: Tensor,
    indices: Tensor,
    out: Tensor,
    max_logits: Tensor,
    lse: Tensor,
    sm_scale: float,
    qlod_cpu: Tensor,
    qlod_xpu: Tensor,
    kvlod_cpu: Tensor,
    kvlod_xpu: Tensor,
    d_v: int = -1,
    is_causal: bool = True,
    use_xfa_boost: bool = False,
) -> None:
    """Latent prefill over the slots in ``indices`` ``[tokens, 1, topk]``, -1 ignored."""
    for token in range(q.shape[0]):
        mixed, largest, total = _selected(q[token], kv, indices[token, 0], out.shape[-1], sm_scale)
        out[token], max_logits[token], lse[token] = mixed, largest, largest + total.log()


@simulated("kunlun_ops.concat_and_cache_mla")
def concat_and_cache_mla(
    kv_c: Tensor, k_pe: Tensor, slot_mapping: Tensor, kv_cache: Tensor
) -> None:
    """Write rows ``[kv_c | k_pe]`` into ``kv_cache`` ``[blocks, block, width]``."""
    store_mla_cache(kv_c, k_pe, kv_cache, slot_mapping)


@simulated("kunlun_ops.set_mla_kv_buffer_triton")
def set_mla_kv_buffer_triton(
    kv_buffer: Tensor, loc: Tensor, cache_k_nope: Tensor, cache_k_rope: Tensor
) -> None:
    """Write rows ``[nope | rope]`` into ``kv_buffer`` ``[slots, 1, width]``."""
    store_mla_cache(cache_k_nope, cache_k_rope, kv_buffer, loc)

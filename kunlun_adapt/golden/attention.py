"""Reference attention over a paged key/value cache, in plain PyTorch.

Cache layout is the vendor's: ``[blocks, kv_heads, page, head_dim]``. Scores and
the softmax are computed in float32; the result is cast to the dtype of ``out``.
"""

from __future__ import annotations

import torch
from torch import Tensor


def attend(query: Tensor, key: Tensor, value: Tensor, scale: float, window: int = -1) -> Tensor:
    """Causal attention of the last tokens of one sequence over all of its tokens.

    ``query`` is ``[q_len, heads, dim]``; ``key`` and ``value`` are
    ``[kv_len, kv_heads, dim]`` with ``q_len <= kv_len``. Query ``i`` sees the keys
    ``0 .. kv_len - q_len + i``, or the last ``window`` before its own and that, when
    ``window`` is not negative. Each KV head serves ``heads / kv_heads`` query heads.
    Returns float32 ``[q_len, heads, v_dim]``.
    """
    q_len, heads, _ = query.shape
    kv_len, kv_heads, _ = key.shape
    group = heads // kv_heads
    q = query.float().reshape(q_len, kv_heads, group, -1)
    scores = torch.einsum("qkgd,skd->kgqs", q, key.float()) * scale
    if q_len > 1 or window >= 0:
        position = torch.arange(kv_len - q_len, kv_len, device=query.device)[:, None]
        seen = torch.arange(kv_len, device=query.device)
        hidden = seen > position
        if window >= 0:
            hidden |= seen < position - window
        scores = scores.masked_fill(hidden, float("-inf"))
    weights = torch.softmax(scores, dim=-1)
    mixed = torch.einsum("kgqs,skd->qkgd", weights, value.float())
    return mixed.reshape(q_len, heads, -1)


def gather_pages(cache: Tensor, blocks: Tensor, length: int) -> Tensor:
    """The first ``length`` rows of a sequence whose pages are ``blocks``.

    ``cache`` is ``[blocks, kv_heads, page, dim]``, ``blocks`` int32 ``[n]``. Returns
    ``[length, kv_heads, dim]``.
    """
    page = cache.shape[2]
    used = blocks[: -(-length // page)].long()
    return cache[used].transpose(1, 2).flatten(0, 1)[:length]


def paged_decode_attention(
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
    """Attention of the newest tokens of each request over its paged cache.

    ``q`` is ``[batch, q_len, heads, dim]``, ``out`` ``[batch, q_len, heads, v_dim]``;
    ``block_table`` int32 ``[batch, max_blocks]``; ``seq_lens_cpu`` and ``seq_lens`` hold
    the same int32 ``[batch]`` lengths (newest tokens included) on host and device.
    ``window`` is the number of earlier tokens that a token sees, -1 for all of them.
    A request of length 0 is padding and yields zeros. Writes and returns ``out``.
    """
    for index, length in enumerate(seq_lens_cpu.tolist()):
        if length == 0:
            out[index].zero_()
            continue
        key = gather_pages(key_cache, block_table[index], length)
        value = gather_pages(value_cache, block_table[index], length)
        out[index].copy_(attend(q[index], key, value, scale, window))
    return out


def paged_prefill_attention(
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
    """Causal attention of new tokens over a cached prefix and over themselves.

    ``q`` ``[tokens, heads, dim]``; ``key``, ``value`` ``[tokens, kv_heads, dim]`` are the
    new rows, which are already in the cache too. ``q_lod`` and ``kv_lod`` are int32
    ``[batch + 1]`` running sums of the new and of the total lengths, on host and device;
    ``q_total`` and ``kv_total`` are their last entries; ``window`` is the number of earlier
    tokens that a token sees, -1 for all of them. Rows of ``out``
    ``[tokens, heads, v_dim]`` past ``q_total`` are left alone. Returns ``out``.
    """
    starts, ends = q_lod_cpu.tolist(), kv_lod_cpu.tolist()
    for index in range(len(starts) - 1):
        begin, end = starts[index], starts[index + 1]
        if begin == end:
            continue
        length = ends[index + 1] - ends[index]
        if length == end - begin:
            keys, values = key[begin:end], value[begin:end]
        else:
            keys = gather_pages(key_cache, block_table[index], length)
            values = gather_pages(value_cache, block_table[index], length)
        out[begin:end].copy_(attend(q[begin:end], keys, values, scale, window))
    return out

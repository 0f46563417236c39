"""Reference multi-head latent attention (absorbed form), in plain PyTorch.

One cache row is ``[latent | rope]``. Scores use the whole row, values are its latent
part, so every head attends over the same rows and the result stays in latent space.
"""

from __future__ import annotations

from torch import Tensor

from kunlun_adapt.golden.attention import attend


def gather_rows(kv_cache: Tensor, blocks: Tensor, length: int) -> Tensor:
    """The first ``length`` latent rows of a sequence: ``[length, latent + rope]``.

    ``kv_cache`` is ``[blocks, page, latent + rope]``, ``blocks`` int32 ``[n]``.
    """
    used = blocks[: -(-length // kv_cache.shape[1])].long()
    return kv_cache[used].flatten(0, 1)[:length]


def _attend_rows(query: Tensor, rows: Tensor, rank: int, scale: float) -> Tensor:
    return attend(query, rows[:, None, :], rows[:, None, :rank], scale)


def mla_decode_attention(
    q: Tensor,
    kv_cache: Tensor,
    out: Tensor,
    block_table: Tensor,
    seq_lens_cpu: Tensor,
    seq_lens: Tensor,
    max_seq_len: int,
    scale: float,
) -> Tensor:
    """Absorbed attention of the newest tokens of each request over its latent rows.

    ``q`` ``[batch, q_len, heads, latent + rope]``, ``kv_cache``
    ``[blocks, page, latent + rope]``, ``out`` ``[batch, q_len, heads, latent]``;
    ``block_table`` int32 ``[batch, max_blocks]``; ``seq_lens_cpu``/``seq_lens`` int32
    ``[batch]``, newest tokens included. A request of length 0 is padding and yields
    zeros. Writes and returns ``out``.
    """
    rank = out.shape[-1]
    for index, length in enumerate(seq_lens_cpu.tolist()):
        if length == 0:
            out[index].zero_()
            continue
        rows = gather_rows(kv_cache, block_table[index], length)
        out[index].copy_(_attend_rows(q[index], rows, rank, scale))
    return out


def mla_prefill_attention(
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
    """Absorbed causal attention of new tokens over the latent cache that holds them.

    ``q`` ``[tokens, heads, latent + rope]``, ``out`` ``[tokens, heads, latent]``;
    ``q_lod``/``kv_lod`` int32 ``[batch + 1]`` running sums of the new and of the total
    lengths, on host and device. Rows of ``out`` past ``q_lod[-1]`` are left alone.
    Writes and returns ``out``.
    """
    rank = out.shape[-1]
    starts, ends = q_lod_cpu.tolist(), kv_lod_cpu.tolist()
    for index in range(len(starts) - 1):
        begin, end = starts[index], starts[index + 1]
        if begin == end:
            continue
        rows = gather_rows(kv_cache, block_table[index], ends[index + 1] - ends[index])
        out[begin:end].copy_(_attend_rows(q[begin:end], rows, rank, scale))
    return out

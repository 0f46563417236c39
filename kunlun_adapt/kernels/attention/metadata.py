"""What a forward pass must know about its batch before any layer runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class DecodeMetadata:
    """One new token for each of ``batch`` requests.

    ``block_table`` int32 ``[batch, max_blocks]``; ``seq_lens_cpu`` and ``seq_lens`` hold the
    same int32 ``[batch]`` lengths, the new token included, on host and device.
    """

    batch: int
    block_table: Tensor
    seq_lens_cpu: Tensor
    seq_lens: Tensor
    max_seq_len: int


@dataclass(frozen=True, slots=True)
class ExtendMetadata:
    """New tokens of several requests, laid out one request after the other.

    ``q_lod*`` and ``kv_lod*`` are int32 ``[batch + 1]`` running sums of the new and of the
    total lengths, on host and device; ``q_total`` and ``kv_total`` are their last entries.
    """

    block_table: Tensor
    q_lod_cpu: Tensor
    q_lod: Tensor
    kv_lod_cpu: Tensor
    kv_lod: Tensor
    q_total: int
    kv_total: int
    max_seq_len: int


def block_table_of(
    req_to_token: Tensor, req_pool_indices: Tensor, max_seq_len: int, page_size: int
) -> Tensor:
    """The pages of each request: int32 ``[batch, ceil(max_seq_len / page_size)]``.

    ``req_to_token`` ``[requests, context]`` maps positions to slots. A page's number is
    read off its first slot. Entries past a request's own length are not meaningful but
    always name an existing page.
    """
    first = torch.arange(0, max_seq_len, page_size, device=req_to_token.device)
    slots = req_to_token[req_pool_indices.long()[:, None], first[None, :]]
    return (slots // page_size).to(torch.int32)


def running_sum(lengths: Tensor) -> Tensor:
    """``[0, l0, l0 + l1, ...]`` as int32 ``[n + 1]`` on the host."""
    total = torch.zeros(lengths.numel() + 1, dtype=torch.int32)
    torch.cumsum(lengths, 0, out=total[1:])
    return total


def decode_metadata(batch: Any, req_to_token: Tensor, page_size: int) -> DecodeMetadata:
    """Metadata of a decode batch, from upstream's ``ForwardBatch``.

    Host lengths come from its ``seq_lens_cpu``, so nothing waits for the device.
    """
    seq_lens_cpu = batch.seq_lens_cpu.to(torch.int32)
    max_seq_len = int(seq_lens_cpu.max())
    return DecodeMetadata(
        batch=batch.batch_size,
        block_table=block_table_of(req_to_token, batch.req_pool_indices, max_seq_len, page_size),
        seq_lens_cpu=seq_lens_cpu,
        seq_lens=batch.seq_lens.to(torch.int32),
        max_seq_len=max_seq_len,
    )


def extend_metadata(batch: Any, req_to_token: Tensor, page_size: int) -> ExtendMetadata:
    """Metadata of a prefill, chunked-prefill or mixed batch, from ``ForwardBatch``."""
    new = torch.tensor(batch.extend_seq_lens_cpu, dtype=torch.int32)
    seq_lens = new + torch.tensor(batch.extend_prefix_lens_cpu, dtype=torch.int32)
    q_lod, kv_lod = running_sum(new), running_sum(seq_lens)
    max_seq_len = int(seq_lens.max())
    device = req_to_token.device
    return ExtendMetadata(
        block_table=block_table_of(req_to_token, batch.req_pool_indices, max_seq_len, page_size),
        q_lod_cpu=q_lod,
        q_lod=q_lod.to(device, non_blocking=True),
        kv_lod_cpu=kv_lod,
        kv_lod=kv_lod.to(device, non_blocking=True),
        q_total=int(q_lod[-1]),
        kv_total=int(kv_lod[-1]),
        max_seq_len=max_seq_len,
    )


class CapturedDecode:
    """Decode metadata at fixed addresses, refreshed in place before each graph replay.

    So are compiled steps served, which are made for one shape.
    """

    def __init__(self, max_batch: int, context_len: int, page_size: int, device: Any) -> None:
        blocks = -(-context_len // page_size)
        self.max_batch = max_batch
        self._context_len = context_len
        self._page_size = page_size
        self._block_table = torch.zeros(max_batch, blocks, dtype=torch.int32, device=device)
        self._seq_lens = torch.ones(max_batch, dtype=torch.int32, device=device)
        self._seq_lens_cpu = torch.ones(max_batch, dtype=torch.int32)

    def refresh(self, batch: Any, req_to_token: Tensor) -> DecodeMetadata:
        """Fill the buffers for ``batch`` and return views of its size."""
        size = batch.batch_size
        # Upstream's compiled batches, which are on the host, have these only.
        lens = batch.seq_lens if batch.seq_lens_cpu is None else batch.seq_lens_cpu
        lens = lens[:size]
        self._seq_lens_cpu[:size].copy_(lens)
        self._seq_lens[:size].copy_(batch.seq_lens[:size])
        table = block_table_of(
            req_to_token, batch.req_pool_indices[:size], int(lens.max()), self._page_size
        )
        self._block_table[:size, : table.shape[1]].copy_(table)
        return self.views(size)

    def views(self, size: int) -> DecodeMetadata:
        """Return the buffers' first ``size`` requests as they stand."""
        return DecodeMetadata(
            batch=size,
            block_table=self._block_table[:size],
            seq_lens_cpu=self._seq_lens_cpu[:size],
            seq_lens=self._seq_lens[:size],
            max_seq_len=self._context_len,
        )

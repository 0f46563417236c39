"""Block tables and lengths as the backend prepares them for each batch."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")
from kunlun_adapt.kernels.attention.metadata import (  # noqa: E402
    CapturedDecode,
    decode_metadata,
    extend_metadata,
)

pytestmark = pytest.mark.torch
PAGE = 4


@pytest.fixture
def req_to_token():
    """Three requests of 12 positions; request 2 holds pages 7, 1, 4 in this order."""
    table = torch.zeros(3, 12, dtype=torch.int32)
    for request, pages in enumerate([(2, 3, 0), (5, 6, 8), (7, 1, 4)]):
        table[request] = torch.cat([torch.arange(p * PAGE, (p + 1) * PAGE) for p in pages])
    return table


def decode_batch(indices, lens):
    return SimpleNamespace(
        batch_size=len(lens),
        req_pool_indices=torch.tensor(indices),
        seq_lens=torch.tensor(lens),
        seq_lens_cpu=torch.tensor(lens),
    )


def test_decode(req_to_token):
    meta = decode_metadata(decode_batch([2, 0], [9, 5]), req_to_token, PAGE)
    assert meta.block_table.tolist() == [[7, 1, 4], [2, 3, 0]]
    assert meta.block_table.dtype == meta.seq_lens.dtype == meta.seq_lens_cpu.dtype == torch.int32
    assert (meta.max_seq_len, meta.seq_lens.tolist()) == (9, [9, 5])


def test_a_full_last_page_takes_no_further_block(req_to_token):
    meta = decode_metadata(decode_batch([2], [8]), req_to_token, PAGE)
    assert meta.block_table.tolist() == [[7, 1]]


def test_extend(req_to_token):
    batch = SimpleNamespace(
        req_pool_indices=torch.tensor([1, 2]),
        extend_seq_lens_cpu=[3, 5],
        extend_prefix_lens_cpu=[0, 4],
    )
    meta = extend_metadata(batch, req_to_token, PAGE)
    assert meta.q_lod_cpu.tolist() == meta.q_lod.tolist() == [0, 3, 8]
    assert meta.kv_lod_cpu.tolist() == meta.kv_lod.tolist() == [0, 3, 12]
    assert (meta.q_total, meta.kv_total, meta.max_seq_len) == (8, 12, 9)
    assert meta.block_table.tolist() == [[5, 6, 8], [7, 1, 4]]


def test_captured_decode_keeps_its_addresses(req_to_token):
    captured = CapturedDecode(4, 12, PAGE, "cpu")
    first = captured.refresh(decode_batch([0], [1]), req_to_token)
    second = captured.refresh(decode_batch([2, 0], [9, 5]), req_to_token)
    assert first.block_table.data_ptr() == second.block_table.data_ptr()
    assert first.seq_lens_cpu.data_ptr() == second.seq_lens_cpu.data_ptr()
    assert second.block_table.tolist() == [[7, 1, 4], [2, 3, 0]]
    assert second.max_seq_len == 12


def test_padding_of_a_compiled_step_keeps_its_shapes(req_to_token):
    captured = CapturedDecode(4, 12, PAGE, "cpu")
    # Upstream fills up the batch that it compiled, which has its lengths once.
    padded = decode_batch([2, 0, 0, 0], [9, 1, 1, 1])
    padded.seq_lens_cpu = None
    meta = captured.refresh(padded, req_to_token)
    assert meta.seq_lens_cpu.tolist() == meta.seq_lens.tolist() == [9, 1, 1, 1]
    assert meta.block_table[0].tolist() == [7, 1, 4]
    while_compiled = captured.views(4)
    assert while_compiled.block_table.shape == meta.block_table.shape
    assert while_compiled.max_seq_len == meta.max_seq_len == 12

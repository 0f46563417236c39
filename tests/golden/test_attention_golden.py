"""The attention goldens against torch's own attention, request by request."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
from torch.nn.functional import scaled_dot_product_attention  # noqa: E402

from kunlun_adapt.golden.attention import (  # noqa: E402
    gather_pages,
    paged_decode_attention,
    paged_prefill_attention,
)

pytestmark = pytest.mark.torch
PAGE, HEADS, KV_HEADS, DIM, V_DIM = 4, 4, 2, 8, 6
LENGTHS = [1, 4, 5, 11]


def paged_rows(lengths, width, seed):
    """Rows of each request, the cache that holds them and its block table, pages out of order."""
    generator = torch.Generator().manual_seed(seed)
    rows = [torch.randn(n, KV_HEADS, width, generator=generator) for n in lengths]
    blocks = [-(-n // PAGE) for n in lengths]
    order = torch.randperm(sum(blocks), generator=torch.Generator().manual_seed(7)) + 1
    cache = torch.full((sum(blocks) + 1, KV_HEADS, PAGE, width), float("nan"))
    table = torch.zeros(len(lengths), max(blocks), dtype=torch.int32)
    for index, (row, pages) in enumerate(zip(rows, order.split(blocks), strict=True)):
        table[index, : len(pages)] = pages
        for position, entry in enumerate(row):
            cache[pages[position // PAGE], :, position % PAGE] = entry
    return rows, cache, table


def expected(query, key, value, scale, window=-1):
    """Causal attention of the last rows, by torch with an explicit mask."""
    q_len, kv_len = query.shape[0], key.shape[0]
    mask = torch.ones(q_len, kv_len, dtype=torch.bool).tril(kv_len - q_len)
    if window >= 0:
        mask = mask.triu(kv_len - q_len - window)
    result = scaled_dot_product_attention(
        query.transpose(0, 1)[None],
        key.transpose(0, 1)[None],
        value.transpose(0, 1)[None],
        attn_mask=mask,
        scale=scale,
        enable_gqa=True,
    )
    return result[0].transpose(0, 1)


@pytest.fixture
def batch():
    keys, key_cache, table = paged_rows(LENGTHS, DIM, 1)
    values, value_cache, _ = paged_rows(LENGTHS, V_DIM, 2)
    return keys, values, key_cache, value_cache, table


def test_gather_pages_returns_rows_in_order(batch):
    keys, _, key_cache, _, table = batch
    for index, length in enumerate(LENGTHS):
        assert torch.equal(gather_pages(key_cache, table[index], length), keys[index])


@pytest.mark.parametrize("window", [-1, 0, 3, 6, 20])
@pytest.mark.parametrize("q_len", [1, 2])
def test_decode_equals_torch(batch, q_len, window):
    keys, values, key_cache, value_cache, table = batch
    lens = torch.tensor(LENGTHS, dtype=torch.int32).clamp(min=q_len)
    rows = [i for i, n in enumerate(LENGTHS) if n >= q_len]
    q = torch.randn(len(LENGTHS), q_len, HEADS, DIM)
    out = torch.full((len(LENGTHS), q_len, HEADS, V_DIM), float("nan"))
    result = paged_decode_attention(
        q, key_cache, value_cache, out, table, lens, lens, max(LENGTHS), 0.3, window
    )
    assert result is out
    for index in rows:
        want = expected(q[index], keys[index], values[index], 0.3, window)
        torch.testing.assert_close(out[index], want, atol=1e-5, rtol=1e-5)


def test_decode_of_padding_is_zero(batch):
    _, _, key_cache, value_cache, table = batch
    lens = torch.tensor([0, 4, 5, 11], dtype=torch.int32)
    out = torch.full((4, 1, HEADS, V_DIM), float("nan"))
    q = torch.randn(4, 1, HEADS, DIM)
    paged_decode_attention(q, key_cache, value_cache, out, table, lens, lens, 11, 1.0, -1)
    assert not out[0].any()
    assert torch.isfinite(out).all()


@pytest.mark.parametrize("window", [-1, 0, 3, 6, 20])
@pytest.mark.parametrize("prefix", [[0, 0, 0, 0], [0, 1, 4, 9], [0, 3, 0, 10]])
def test_prefill_equals_torch_with_and_without_prefix(batch, prefix, window):
    keys, values, key_cache, value_cache, table = batch
    new = [n - p for n, p in zip(LENGTHS, prefix, strict=True)]
    q = torch.randn(sum(new) + 2, HEADS, DIM)
    out = torch.full((sum(new) + 2, HEADS, V_DIM), 5.0)
    fresh = [torch.cat([r[p:] for r, p in zip(x, prefix, strict=True)]) for x in (keys, values)]
    q_lod = torch.tensor([0, *torch.tensor(new).cumsum(0)], dtype=torch.int32)
    kv_lod = torch.tensor([0, *torch.tensor(LENGTHS).cumsum(0)], dtype=torch.int32)
    lods = (q_lod, q_lod, kv_lod, kv_lod)
    paged_prefill_attention(
        q, *fresh, key_cache, value_cache, out, table, *lods, sum(new), sum(LENGTHS), 0.3, window
    )
    begin = 0
    for index, count in enumerate(new):
        want = expected(q[begin : begin + count], keys[index], values[index], 0.3, window)
        torch.testing.assert_close(out[begin : begin + count], want, atol=1e-5, rtol=1e-5)
        begin += count
    assert (out[begin:] == 5.0).all()

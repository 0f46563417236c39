"""The latent goldens against attention on expanded heads, which is what absorption stands for."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
from torch.nn.functional import scaled_dot_product_attention  # noqa: E402

from kunlun_adapt.golden.mla import mla_decode_attention, mla_prefill_attention  # noqa: E402

pytestmark = pytest.mark.torch
PAGE, HEADS, RANK, ROPE, NOPE = 4, 3, 16, 4, 8
LENGTHS = [3, 8, 9]


@pytest.fixture
def latent():
    """Latent rows of each request, their paged cache, its block table, and the key expansion."""
    torch.manual_seed(0)
    rows = [torch.randn(n, RANK + ROPE) for n in LENGTHS]
    cache = torch.full((8, PAGE, RANK + ROPE), float("nan"))
    table = torch.tensor([[5, 0, 0], [2, 7, 0], [1, 3, 6]], dtype=torch.int32)
    for index, row in enumerate(rows):
        for position, entry in enumerate(row):
            cache[table[index, position // PAGE], position % PAGE] = entry
    return rows, cache, table, torch.randn(HEADS, NOPE, RANK), torch.randn(HEADS, RANK, 5)


def expanded(nope, rope, rows, w_key, w_value, scale):
    """Plain attention of the last tokens with keys and values made of the latent rows."""
    key = torch.einsum("hnr,sr->hsn", w_key, rows[:, :RANK])
    key = torch.cat([key, rows[:, RANK:].expand(HEADS, -1, -1)], dim=-1)
    value = torch.einsum("sr,hrv->hsv", rows[:, :RANK], w_value)
    query = torch.cat([nope, rope], dim=-1).transpose(0, 1)
    mask = torch.ones(query.shape[1], key.shape[1], dtype=torch.bool)
    mask = mask.tril(key.shape[1] - query.shape[1])
    result = scaled_dot_product_attention(
        query[None], key[None], value[None], attn_mask=mask, scale=scale
    )
    return result[0].transpose(0, 1)


def absorb(nope, rope, w_key):
    return torch.cat([torch.einsum("...hn,hnr->...hr", nope, w_key), rope], dim=-1)


@pytest.mark.parametrize("q_len", [1, 2, 3])
def test_decode_equals_expanded_heads(latent, q_len):
    rows, cache, table, w_key, w_value = latent
    nope, rope = torch.randn(3, q_len, HEADS, NOPE), torch.randn(3, q_len, HEADS, ROPE)
    lens = torch.tensor(LENGTHS, dtype=torch.int32)
    out = torch.empty(3, q_len, HEADS, RANK)
    mla_decode_attention(absorb(nope, rope, w_key), cache, out, table, lens, lens, 9, 0.2)
    for index in range(3):
        want = expanded(nope[index], rope[index], rows[index], w_key, w_value, 0.2)
        got = torch.einsum("qhr,hrv->qhv", out[index], w_value)
        torch.testing.assert_close(got, want, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("prefix", [[0, 0, 0], [2, 4, 0], [0, 7, 8]])
def test_prefill_equals_expanded_heads(latent, prefix):
    rows, cache, table, w_key, w_value = latent
    new = [n - p for n, p in zip(LENGTHS, prefix, strict=True)]
    nope, rope = torch.randn(sum(new), HEADS, NOPE), torch.randn(sum(new), HEADS, ROPE)
    q_lod = torch.tensor([0, *torch.tensor(new).cumsum(0)], dtype=torch.int32)
    kv_lod = torch.tensor([0, *torch.tensor(LENGTHS).cumsum(0)], dtype=torch.int32)
    out = torch.empty(sum(new), HEADS, RANK)
    query = absorb(nope, rope, w_key)
    mla_prefill_attention(query, cache, out, table, q_lod, q_lod, kv_lod, kv_lod, 9, 0.2)
    begin = 0
    for index, count in enumerate(new):
        part = slice(begin, begin + count)
        want = expanded(nope[part], rope[part], rows[index], w_key, w_value, 0.2)
        got = torch.einsum("qhr,hrv->qhv", out[part], w_value)
        torch.testing.assert_close(got, want, atol=1e-4, rtol=1e-4)
        begin += count

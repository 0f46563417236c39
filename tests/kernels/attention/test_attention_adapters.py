"""Each adapter on its simulated vendor kernel against the golden, inside its tier's borders."""

from __future__ import annotations

import math

import pytest

torch = pytest.importorskip("torch")
from kunlun_adapt import simulator  # noqa: E402

simulator.install()

from kunlun_adapt.golden import attention as golden  # noqa: E402
from kunlun_adapt.kernels.attention import paged  # noqa: E402
from kunlun_adapt.kernels.attention.metadata import running_sum  # noqa: E402
from kunlun_adapt.simulator.contract import ContractError, calls  # noqa: E402

pytestmark = pytest.mark.torch
PAGE, HEADS, KV_HEADS = 16, 4, 2
TOLERANCE = {torch.float32: 1e-5, torch.bfloat16: 2e-2, torch.float16: 4e-3}


def caches(dim, v_dim, dtype, blocks=9):
    torch.manual_seed(0)
    shape = (blocks, KV_HEADS, PAGE)
    return torch.randn(*shape, dim, dtype=dtype), torch.randn(*shape, v_dim, dtype=dtype)


def prefill_call(new, total, dim, v_dim, dtype, window=-1):
    key_cache, value_cache = caches(dim, v_dim, dtype)
    table = torch.tensor([[1, 2, 3], [4, 5, 6]], dtype=torch.int32)
    q_lod, kv_lod = running_sum(torch.tensor(new)), running_sum(torch.tensor(total))
    rows = []
    for cache in (key_cache, value_cache):
        parts = [golden.gather_pages(cache, table[i], total[i])[-new[i] :] for i in range(2)]
        rows.append(torch.cat(parts))
    q = torch.randn(sum(new), HEADS, dim, dtype=dtype)
    out = torch.full((sum(new), HEADS, v_dim), float("nan"), dtype=dtype)
    lods = (q_lod, q_lod.clone(), kv_lod, kv_lod.clone())
    tail = (sum(new), sum(total), 0.7 / math.sqrt(dim), window)
    return [q, *rows, key_cache, value_cache, out, table, *lods, *tail]


def same(adapter, reference, call, out_at, dtype):
    want = reference(*[torch.empty_like(x) if i == out_at else x for i, x in enumerate(call)])
    got = adapter(*call)
    assert got is call[out_at]
    torch.testing.assert_close(got, want, atol=TOLERANCE[dtype], rtol=TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", list(TOLERANCE))
@pytest.mark.parametrize(("dim", "v_dim"), [(32, 32), (64, 64), (128, 128), (192, 128)])
@pytest.mark.parametrize("window", [-1, 7])
def test_raw_prefill(dim, v_dim, dtype, window):
    before = calls["kunlun_ops.prefill_attention"]
    call = prefill_call([5, 33], [5, 33], dim, v_dim, dtype, window)
    same(paged.prefill_raw, golden.paged_prefill_attention, call, 5, dtype)
    assert calls["kunlun_ops.prefill_attention"] == before + 1


@pytest.mark.parametrize("dtype", list(TOLERANCE))
@pytest.mark.parametrize("new", [[1, 1], [4, 17], [20, 40]])
@pytest.mark.parametrize("window", [-1, 7])
def test_paged_prefill_over_a_prefix(new, dtype, window):
    call = prefill_call(new, [20, 40], 64, 64, dtype, window)
    same(paged.prefill_paged, golden.paged_prefill_attention, call, 5, dtype)


@pytest.mark.parametrize("dtype", list(TOLERANCE))
@pytest.mark.parametrize("q_len", [1, 3])
@pytest.mark.parametrize("window", [-1, 0, 7])
def test_decode(q_len, dtype, window):
    call = decode_call(q_len, 64, dtype, window=window)
    same(paged.decode_speculative, golden.paged_decode_attention, call, 3, dtype)


def decode_call(q_len, dim, dtype, scale=None, window=-1):
    key_cache, value_cache = caches(dim, dim, dtype)
    table = torch.tensor([[1, 2, 3], [4, 5, 6]], dtype=torch.int32)
    lens = torch.tensor([16, 35], dtype=torch.int32)
    q = torch.randn(2, q_len, HEADS, dim, dtype=dtype)
    scale = scale or 0.7 / math.sqrt(dim)
    out = torch.empty_like(q)
    return [q, key_cache, value_cache, out, table, lens, lens.clone(), 35, scale, window]


def test_decode_by_the_kernel_without_a_scale():
    call = decode_call(1, 128, torch.float32, scale=1 / math.sqrt(128))
    same(paged.decode_paged, golden.paged_decode_attention, call, 3, torch.float32)


def test_kernel_refuses_a_head_size_outside_the_tier():
    with pytest.raises(ContractError, match=r"speculative_attention.*head sizes"):
        paged.decode_speculative(*decode_call(1, 16, torch.float32))
    with pytest.raises(ContractError, match=r"prefill_attention.*head sizes"):
        paged.prefill_raw(*prefill_call([5, 33], [5, 33], 16, 16, torch.float32))


def test_kernel_refuses_rows_that_were_not_made_contiguous():
    call = prefill_call([5, 33], [5, 33], 64, 64, torch.float32)
    call[0] = call[0].transpose(0, 1).contiguous().transpose(0, 1)
    with pytest.raises(ContractError, match="q is not contiguous"):
        paged.prefill_raw(*call)


def test_kernel_without_a_scale_refuses_other_head_sizes():
    with pytest.raises(ContractError, match="fixed at 128"):
        paged.decode_paged(*decode_call(1, 64, torch.float32))

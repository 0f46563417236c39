"""What the simulated attention and cache ops compute and refuse, called as the vendor's are."""

from __future__ import annotations

import math

import pytest

torch = pytest.importorskip("torch")
from torch.nn.functional import scaled_dot_product_attention  # noqa: E402

from kunlun_adapt.simulator import attention, kv_cache, mla  # noqa: E402
from kunlun_adapt.simulator.contract import ContractError  # noqa: E402

pytestmark = pytest.mark.torch


def prefill(q, k, v, **changes):
    lod = torch.tensor([0, q.shape[0]], dtype=torch.int32)
    call = {
        "q": q,
        "k": k,
        "v": v,
        "out": torch.empty_like(q),
        "is_causal": True,
        "is_prefix_cache": False,
        "alpha": 1.0,
        "block_table": None,
        "context_qlen_lod_cpu": lod,
        "context_qlen_lod_xpu": lod,
        "context_kvlen_lod_cpu": lod,
        "context_kvlen_lod_xpu": lod,
        **changes,
    }
    attention.prefill_attention(**call)
    return call["out"]


@pytest.mark.parametrize("causal", [True, False])
def test_prefill_has_a_scale_of_its_own(causal):
    q, k, v = (torch.randn(5, 2, 32) for _ in range(3))
    got = prefill(q, k, v, is_causal=causal, alpha=0.5)
    rows = [x.transpose(0, 1)[None] for x in (q, k, v)]
    want = scaled_dot_product_attention(*rows, is_causal=causal, scale=0.5 / math.sqrt(32))
    torch.testing.assert_close(got, want[0].transpose(0, 1), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"context_qlen_lod_xpu": torch.tensor([0, 5])}, "context_qlen_lod_xpu is int64"),
        ({"v": torch.randn(5, 2, 16)}, "v is .5, 2, 16., expected"),
        ({"block_table": torch.zeros(3, 2, dtype=torch.int32)}, "expected .B.1.: .*B=3"),
        ({"swa_right": 4}, "swa_right is 4"),
        ({"swa_left": 4}, "a window ends with the token itself"),
        ({"swa_left": 4, "swa_right": 0, "is_causal": False}, "a window ends with"),
    ],
)
def test_prefill_refuses(changes, problem):
    rows = {name: torch.randn(5, 2, 32) for name in ("q", "k", "v")}
    with pytest.raises(ContractError, match=problem):
        prefill(**{**rows, **changes})


def test_both_ops_see_the_window_before_a_token_and_the_token():
    q, k, v = (torch.randn(5, 2, 32) for _ in range(3))
    mask = torch.ones(5, 5, dtype=torch.bool).tril().triu(-2)
    rows = [x.transpose(0, 1)[None] for x in (q, k, v)]
    want = scaled_dot_product_attention(*rows, attn_mask=mask)[0].transpose(0, 1)
    got = prefill(q, k, v, swa_left=2, swa_right=0)
    torch.testing.assert_close(got, want, atol=1e-5, rtol=1e-5)
    # The cache holds 3 tokens: with two earlier ones all are seen, with one the first is not.
    assert torch.equal(speculative(max_window_size=2), speculative())
    assert not torch.allclose(speculative(max_window_size=1), speculative())


def speculative(**changes):
    torch.manual_seed(0)
    lens = torch.tensor([3], dtype=torch.int32)
    call = {
        "out": torch.empty(1, 1, 2, 32),
        "q": torch.randn(1, 1, 2, 32),
        "k_cache": torch.randn(2, 1, 4, 32),
        "v_cache": torch.randn(2, 1, 4, 32),
        "context_lens_cpu": lens,
        "context_lens_xpu": lens,
        "batch_num": 1,
        "qlen": 1,
        "max_context_len": 3,
        "head_num": 2,
        "head_dim": 32,
        "scale": 1 / math.sqrt(32),
        "kv_head_num": 1,
        "block_size": 4,
        "max_num_blocks_per_seq": 1,
        "max_window_size": -1,
        "block_tables": torch.tensor([[1]], dtype=torch.int32),
        **changes,
    }
    attention.speculative_attention(**call)
    return call["out"]


def test_a_scale_of_zero_is_the_default_scale():
    assert torch.equal(speculative(scale=0.0), speculative())
    assert not torch.equal(speculative(scale=1.0), speculative())


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"kv_head_num": 2}, "k_cache"),
        ({"block_size": 8}, "k_cache"),
        ({"max_context_len": 5}, "block table covers"),
        ({"qlen": 2}, "out"),
        ({"head_num": True}, "head_num is True"),
    ],
)
def test_speculative_refuses_numbers_that_contradict_its_tensors(changes, problem):
    with pytest.raises(ContractError, match=problem):
        speculative(**changes)


def test_indexed_latent_decode_reports_natural_logarithms():
    cache, q = torch.randn(8, 576).half(), torch.randn(1, 1, 2, 576).half()
    lens = torch.tensor([2], dtype=torch.int32)
    out, top, total = torch.zeros(1, 1, 2, 512).half(), torch.zeros(1, 1, 2), torch.zeros(1, 1, 2)
    indices = torch.tensor([[[5, 1, -1, -1]]], dtype=torch.int32)
    mla.fwd_kvcache_mla(q, cache, indices, lens, out, top, total, 0.04, 2)
    scores = q[0, 0].float() @ cache[[5, 1]].float().T * 0.04
    torch.testing.assert_close((top + total.log())[0, 0], scores.logsumexp(-1))
    want = scores.softmax(-1) @ cache[[5, 1], :512].float()
    torch.testing.assert_close(out[0, 0].float(), want, atol=4e-3, rtol=4e-3)


def test_indexed_latent_decode_refuses_a_dirty_output():
    lens, dirty = torch.tensor([2], dtype=torch.int32), torch.ones(1, 1, 2, 512).half()
    indices = torch.zeros(1, 1, 4, dtype=torch.int32)
    with pytest.raises(ContractError, match="out must come in zero-filled"):
        mla.fwd_kvcache_mla(
            torch.randn(1, 1, 2, 576).half(),
            torch.randn(8, 576).half(),
            indices,
            lens,
            dirty,
            torch.zeros(1, 1, 2),
            torch.zeros(1, 1, 2),
            0.04,
            2,
        )


def test_latent_scatter_needs_both_halves():
    with pytest.raises(ContractError, match="both halves"):
        mla.set_mla_kv_buffer_triton(
            torch.zeros(4, 1, 8), torch.tensor([1]), torch.randn(1, 8), torch.randn(1, 0)
        )


def test_reshape_and_cache_wants_int32_slots_and_its_flag():
    call = [torch.randn(1, 1, 8), torch.randn(1, 1, 8), torch.zeros(2, 1, 4, 8)]
    call.append(call[2].clone())
    with pytest.raises(ContractError, match="slot_mapping is int64"):
        kv_cache.reshape_and_cache(*call, torch.tensor([1]), None, None, 0)
    with pytest.raises(ContractError, match="flag is 1"):
        kv_cache.reshape_and_cache(*call, torch.tensor([1], dtype=torch.int32), None, None, flag=1)

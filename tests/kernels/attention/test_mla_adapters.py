"""The latent adapters on their simulated vendor kernels against the goldens."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
from kunlun_adapt import simulator  # noqa: E402

simulator.install()

from kunlun_adapt.golden import mla as golden  # noqa: E402
from kunlun_adapt.kernels.attention import mla  # noqa: E402
from kunlun_adapt.kernels.attention.metadata import running_sum  # noqa: E402
from kunlun_adapt.simulator.contract import ContractError  # noqa: E402

pytestmark = pytest.mark.torch
PAGE, HEADS = 16, 4
TOLERANCE = {torch.float32: 1e-4, torch.bfloat16: 2e-2, torch.float16: 4e-3}
TABLE = torch.tensor([[5, 2, 7], [1, 6, 3]], dtype=torch.int32)


def decode_call(q_len, rank, rope, dtype):
    torch.manual_seed(0)
    cache = torch.randn(8, PAGE, rank + rope, dtype=dtype)
    q = torch.randn(2, q_len, HEADS, rank + rope, dtype=dtype)
    out = torch.full((2, q_len, HEADS, rank), float("nan"), dtype=dtype)
    lens = torch.tensor([16, 35], dtype=torch.int32)
    return [q, cache, out, TABLE, lens, lens.clone(), 35, 0.04]


def prefill_call(new, rank, rope, dtype, padding=0):
    torch.manual_seed(0)
    total = torch.tensor([20, 40])
    cache = torch.randn(8, PAGE, rank + rope, dtype=dtype)
    q = torch.randn(sum(new) + padding, HEADS, rank + rope, dtype=dtype)
    out = torch.full((sum(new) + padding, HEADS, rank), 3.0, dtype=dtype)
    q_lod, kv_lod = running_sum(torch.tensor(new)), running_sum(total)
    return [q, cache, out, TABLE, q_lod, q_lod.clone(), kv_lod, kv_lod.clone(), 40, 0.04]


def same(adapter, reference, call, dtype):
    want = reference(*[x.clone() if i == 2 else x for i, x in enumerate(call)])
    got = adapter(*call)
    assert got is call[2]
    torch.testing.assert_close(got, want, atol=TOLERANCE[dtype], rtol=TOLERANCE[dtype])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("q_len", [1, 2])
def test_indexed_decode(q_len, dtype):
    call = decode_call(q_len, 512, 64, dtype)
    same(mla.decode_indexed, golden.mla_decode_attention, call, dtype)


@pytest.mark.parametrize("dtype", list(TOLERANCE))
@pytest.mark.parametrize(("rank", "rope"), [(512, 64), (32, 16)])
def test_paged_decode(rank, rope, dtype):
    call = decode_call(1, rank, rope, dtype)
    same(mla.decode_paged, golden.mla_decode_attention, call, dtype)


@pytest.mark.parametrize("new", [[1, 1], [4, 17], [20, 40]])
def test_indexed_prefill(new):
    call = prefill_call(new, 512, 64, torch.bfloat16, padding=3)
    same(mla.prefill_indexed, golden.mla_prefill_attention, call, torch.bfloat16)


@pytest.mark.parametrize("dtype", list(TOLERANCE))
@pytest.mark.parametrize("new", [[1, 1], [4, 17], [20, 40]])
def test_prefill_by_token(new, dtype):
    call = prefill_call(new, 32, 16, dtype, padding=3)
    same(mla.prefill_by_token, golden.mla_prefill_attention, call, dtype)


def test_token_owners():
    q_lod, kv_lod = running_sum(torch.tensor([2, 0, 3])), running_sum(torch.tensor([2, 9, 7]))
    owner, visible = mla.token_owners(q_lod, kv_lod)
    assert owner.tolist() == [0, 0, 2, 2, 2]
    assert visible.tolist() == [1, 2, 5, 6, 7]


def test_slot_indices_mark_what_is_out_of_sight():
    slots = mla.slot_indices(TABLE, 4, 6, torch.tensor([2, 6]))
    assert slots.dtype == torch.int32
    assert slots.tolist() == [[20, 21, -1, -1, -1, -1], [4, 5, 6, 7, 24, 25]]


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        (decode_call(1, 512, 64, torch.float32), "q_c is float32"),
        (decode_call(3, 512, 64, torch.bfloat16), "Q <= 2"),
        (decode_call(1, 256, 64, torch.bfloat16), "expected .B, Q, H, 576"),
    ],
)
def test_indexed_decode_refuses_what_its_tier_leaves_out(call, problem):
    with pytest.raises(ContractError, match=problem):
        mla.decode_indexed(*call)


def test_indexed_prefill_refuses_float16():
    with pytest.raises(ContractError, match="q is float16"):
        mla.prefill_indexed(*prefill_call([4, 17], 512, 64, torch.float16))

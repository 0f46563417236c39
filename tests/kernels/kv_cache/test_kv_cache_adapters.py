"""The cache-write adapters on their simulated vendor kernels: exact."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
from kunlun_adapt import simulator  # noqa: E402

simulator.install()

from kunlun_adapt.golden import kv_cache as golden  # noqa: E402
from kunlun_adapt.kernels.kv_cache import store  # noqa: E402
from kunlun_adapt.simulator.contract import ContractError  # noqa: E402

pytestmark = pytest.mark.torch
DTYPES = [torch.float32, torch.float16, torch.bfloat16]
SLOTS = torch.tensor([17, 3, 30])


def kv_call(dtype, v_dim=8):
    key, value = torch.randn(3, 2, 8, dtype=dtype), torch.randn(3, 2, v_dim, dtype=dtype)
    caches = [torch.zeros(2, 2, 16, width, dtype=dtype) for width in (8, v_dim)]
    return [key, value, *caches, SLOTS]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("adapter", "fixed"),
    [(store.store_flash, {"blhd_layout": False}), (store.store_reshape, {})],
)
def test_key_and_value_rows(adapter, fixed, dtype):
    call = kv_call(dtype)
    want = [call[2].clone(), call[3].clone()]
    golden.store_kv_cache(call[0], call[1], *want, SLOTS)
    adapter(*call, **fixed)
    assert torch.equal(call[2], want[0])
    assert torch.equal(call[3], want[1])


def test_the_layout_flag_is_not_a_detail():
    call = kv_call(torch.float32)
    call[2:4] = [torch.zeros(2, 16, 16, 8), torch.zeros(2, 16, 16, 8)]
    call[0], call[1] = torch.randn(3, 16, 8), torch.randn(3, 16, 8)
    by_head = [x.clone() if i in (2, 3) else x for i, x in enumerate(call)]
    store.store_flash(*call, blhd_layout=True)
    store.store_flash(*by_head, blhd_layout=False)
    assert not torch.equal(call[2], by_head[2])
    assert torch.equal(call[2].transpose(1, 2), by_head[2])


@pytest.mark.parametrize(
    ("adapter", "dtype"),
    [
        (store.store_mla_concat, torch.float16),
        (store.store_mla_concat, torch.bfloat16),
        (store.store_mla_scatter, torch.float32),
    ],
)
def test_latent_rows(adapter, dtype):
    latent, rope = torch.randn(3, 8, dtype=dtype), torch.randn(3, 4, dtype=dtype)
    cache = torch.zeros(2, 16, 12, dtype=dtype)
    want = cache.clone()
    golden.store_mla_cache(latent, rope, want, SLOTS)
    adapter(latent, rope, cache, SLOTS)
    assert torch.equal(cache, want)


def test_the_16_bit_writer_refuses_float32():
    with pytest.raises(ContractError, match="kv_c is float32"):
        store.store_mla_concat(torch.randn(3, 8), torch.randn(3, 4), torch.zeros(2, 16, 12), SLOTS)


def test_values_narrower_than_keys_are_refused():
    with pytest.raises(ContractError, match="value"):
        store.store_flash(*kv_call(torch.float32, v_dim=6), blhd_layout=False)

"""Each layer adapter on its simulated vendor op against the golden, at the borders of its tier."""

from __future__ import annotations

from functools import partial

import pytest

torch = pytest.importorskip("torch")
from kunlun_adapt import simulator  # noqa: E402

simulator.install()

from kunlun_adapt.golden import activation as golden_activation  # noqa: E402
from kunlun_adapt.golden import moe as golden_moe  # noqa: E402
from kunlun_adapt.golden import norm as golden_norm  # noqa: E402
from kunlun_adapt.golden import rope as golden_rope  # noqa: E402
from kunlun_adapt.kernels import activation, moe, norm, rope  # noqa: E402
from kunlun_adapt.simulator.contract import ContractError, calls  # noqa: E402

pytestmark = pytest.mark.torch
DTYPES = [torch.float32, torch.bfloat16, torch.float16]
PLAIN = (None, False, False, None)
SILU = ("silu", False, False, None, None, 1)
EXPERTS, HIDDEN, WIDTH = 8, 32, 16
# As the recipes of the routing and the experts say.
CLUSTERS = 12


@pytest.fixture(autouse=True)
def fresh():
    torch.manual_seed(3)
    calls.clear()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 8), (7, 64), (2, 3, 10), (0, 8)])
def test_swiglu(dtype, shape):
    x = torch.randn(shape, dtype=dtype)
    assert torch.equal(activation.swiglu(x, None), golden_activation.silu_and_mul(x, None))
    out = x.new_empty((*shape[:-1], shape[-1] // 2))
    assert activation.swiglu(x, out) is out
    assert calls["kunlun_ops.swiglu"] == 2


def test_swiglu_refuses_a_slice():
    with pytest.raises(ContractError, match="not contiguous"):
        activation.swiglu(torch.randn(4, 16)[:, :8], None)


@pytest.mark.parametrize("dtype", DTYPES)
def test_rmsnorm(dtype):
    x, weight = torch.randn(5, 16, dtype=dtype), torch.rand(16).to(dtype)
    out = norm.rmsnorm(x, weight, 1e-5, None, None, *PLAIN)
    assert torch.equal(out, golden_norm.rms_norm(x, weight, 1e-5, None, None, *PLAIN))
    assert calls["kunlun_ops.rmsnorm"] == 1


@pytest.mark.parametrize("dtype", DTYPES)
def test_add_rmsnorm_leaves_its_arguments_alone(dtype):
    x, residual = torch.randn(2, 5, 16, dtype=dtype)
    weight, before = torch.rand(16).to(dtype), (x.clone(), residual.clone())
    out, total = norm.add_rmsnorm(x, weight, 1e-5, residual, None, *PLAIN)
    expected = golden_norm.rms_norm(x, weight, 1e-5, residual, None, *PLAIN)
    assert torch.equal(out, expected[0]) and torch.equal(total, expected[1])
    assert torch.equal(x, before[0]) and torch.equal(residual, before[1])


def test_add_rmsnorm_refuses_a_wider_residual():
    x, residual = torch.randn(2, 16, dtype=torch.bfloat16), torch.randn(2, 16)
    with pytest.raises(ContractError, match="y is float32, expected bfloat16"):
        norm.add_rmsnorm(x, torch.ones(16), 1e-5, residual, None, *PLAIN)


@pytest.mark.parametrize("neox", [True, False])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("fused", [True, False])
def test_rotary_embedding(neox, dtype, fused):
    """The callers hand over views of a fused projection, or tensors of their own."""
    tokens, heads, kv_heads, head = 5, 4, 2, 8
    cache = torch.randn(64, head, dtype=dtype)
    projection = torch.randn(tokens, (heads + 2 * kv_heads) * head, dtype=dtype)
    query, key, _ = projection.split([heads * head, kv_heads * head, kv_heads * head], dim=-1)
    if not fused:
        query, key = query.reshape(tokens, heads, head), key.reshape(tokens, kv_heads, head)
        query, key = query.clone(), key.clone()
    before = query.clone(), key.clone()
    call = (torch.tensor([3, 0, 9, 63, 1]), query, key, cache, head, head, neox, None)
    got, expected = rope.rotary_embedding(*call), golden_rope.rotary_embedding(*call)
    assert torch.equal(got[0], expected[0]) and torch.equal(got[1], expected[1])
    assert torch.equal(query, before[0]) and torch.equal(key, before[1])
    assert calls["kunlun_ops.rotary_embedding"] == 1


def test_rotary_embedding_refuses_a_table_of_another_dtype():
    query = torch.randn(1, 8, dtype=torch.bfloat16)
    with pytest.raises(ContractError, match="cos_sin_cache is float32"):
        rope.rotary_embedding(
            torch.zeros(1, dtype=torch.int64), query, query, torch.randn(4, 8), 8, 8, True, None
        )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("tokens", [1, 33])
def test_routing_without_groups(dtype, tokens):
    logits = torch.randn(tokens, EXPERTS, dtype=dtype)
    plain = partial(moe.softmax_topk, clusters=CLUSTERS)
    for renormalise, adapter in ((True, moe.softmax_topk_norm), (False, plain)):
        call = (logits, 2, renormalise, None, "softmax")
        got, expected = adapter(*call), golden_moe.topk_routing(*call)
        assert torch.equal(got[0], expected[0]) and torch.equal(got[1], expected[1])


@pytest.mark.parametrize(("scale", "apply_scale"), [(2.5, True), (2.5, False), (None, True)])
def test_grouped_routing_scales_only_when_told(scale, apply_scale):
    logits, bias = torch.randn(9, EXPERTS), torch.rand(EXPERTS)
    call = (logits, bias, 3, True, 4, 2, scale, apply_scale, 0)
    got = moe.sigmoid_group_topk_norm(*call, clusters=CLUSTERS)
    expected = golden_moe.grouped_topk_routing(*call)
    torch.testing.assert_close(got[0], expected[0])
    assert torch.equal(got[1], expected[1])


def experts_call(tokens, topk, dtype):
    x = torch.randn(tokens, HIDDEN, dtype=dtype)
    w13 = (torch.randn(EXPERTS, 2 * WIDTH, HIDDEN) / 6).to(dtype)
    w2 = (torch.randn(EXPERTS, HIDDEN, WIDTH) / 4).to(dtype)
    weights, ids = golden_moe.topk_routing(
        torch.randn(tokens, EXPERTS), topk, True, None, "softmax"
    )
    return (x, w13, w2, weights, ids, *SILU)


TOLERANCE = {torch.float32: 1e-5, torch.bfloat16: 3e-2, torch.float16: 4e-3}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("tokens", "topk"), [(1, 1), (1, 8), (133, 3), (199, 2)])
def test_small_experts(tokens, topk, dtype):
    call = experts_call(tokens, topk, dtype)
    torch.testing.assert_close(
        moe.experts_small(*call), golden_moe.fused_experts(*call), atol=TOLERANCE[dtype], rtol=0
    )
    assert calls["torch.ops.xspeedgate_ops.fused_moe"] == 1


def test_small_experts_end_at_400_pairs():
    with pytest.raises(ContractError, match=r"M \* K < 400"):
        moe.experts_small(*experts_call(200, 2, torch.float32))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("tokens", "topk", "sort", "fused"),
    [
        (200, 2, "small", False),
        (384, 2, "small", False),
        (385, 2, "block", False),
        (1023, 1, "block", False),
        (1024, 1, "block", True),
    ],
)
def test_presorted_experts(tokens, topk, sort, fused, dtype):
    call = experts_call(tokens, topk, dtype)
    got = moe.experts_presorted(*call, sort=sort, fused_activation=fused, clusters=CLUSTERS)
    torch.testing.assert_close(got, golden_moe.fused_experts(*call), atol=TOLERANCE[dtype], rtol=0)
    assert calls["kunlun_ops.moe_fc"] == 2
    assert calls["kunlun_ops.swiglu"] == (0 if fused else 1)


def test_presorted_experts_sort_small_up_to_768_pairs():
    call = experts_call(385, 2, torch.float32)
    with pytest.raises(ContractError, match=r"M \* K <= 768"):
        moe.experts_presorted(*call, sort="small", fused_activation=False, clusters=CLUSTERS)


def test_experts_of_other_ranks_are_refused():
    call = list(experts_call(4, 2, torch.float32))
    call[4] = call[4].clone()
    call[4][0, 0] = -1
    with pytest.raises(ContractError, match="index_have_neg"):
        moe.experts_small(*call)

"""The layer goldens against formulas written another way: by token, or with torch's own ops."""

from __future__ import annotations

import math

import pytest

torch = pytest.importorskip("torch")
import torch.nn.functional as F  # noqa: E402

from kunlun_adapt.golden import activation, elementwise, moe, norm, rope  # noqa: E402

pytestmark = pytest.mark.torch
PLAIN_NORM = (None, False, False, None)


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(7)


def test_silu_and_mul_multiplies_gate_by_up():
    x = torch.tensor([[0.0, 1.0, -2.0, 10.0, 20.0, 30.0]])
    out = activation.silu_and_mul(x, None)
    expected = [g / (1 + math.exp(-g)) * u for g, u in ((0, 10), (1, 20), (-2, 30))]
    assert out.tolist()[0] == pytest.approx(expected, rel=1e-6)


def test_silu_and_mul_fills_the_given_buffer():
    x, buffer = torch.randn(3, 4, 8), torch.empty(3, 4, 4)
    assert activation.silu_and_mul(x, buffer) is buffer
    assert torch.equal(buffer, activation.silu_and_mul(x, None))


def test_silu_and_mul_rounds_once():
    x = torch.randn(64, 32, dtype=torch.bfloat16)
    exact = activation.silu_and_mul(x.double().float(), None)
    assert torch.equal(activation.silu_and_mul(x, None), exact.to(torch.bfloat16))


def test_silu_and_mul_refuses_an_odd_width():
    with pytest.raises(ValueError, match="even"):
        activation.silu_and_mul(torch.zeros(1, 3), None)


def test_rms_norm_is_torchs():
    x, weight = torch.randn(5, 3, 16), torch.rand(16)
    expected = F.rms_norm(x, (16,), weight, 1e-6)
    torch.testing.assert_close(norm.rms_norm(x, weight, 1e-6, None, None, *PLAIN_NORM), expected)


def test_rms_norm_returns_the_sum_that_it_normed():
    x, residual, extra = torch.randn(3, 4, 16)
    weight = torch.rand(16)
    out, total = norm.rms_norm(x, weight, 1e-6, residual, extra, *PLAIN_NORM)
    torch.testing.assert_close(total, x + residual + extra)
    torch.testing.assert_close(out, F.rms_norm(total, (16,), weight, 1e-6))


def test_rms_norm_counts_the_second_addend_only_with_a_residual():
    x, extra, weight = torch.randn(4, 16), torch.randn(4, 16), torch.rand(16)
    with_extra = norm.rms_norm(x, weight, 1e-6, None, extra, *PLAIN_NORM)
    assert torch.equal(with_extra, norm.rms_norm(x, weight, 1e-6, None, None, *PLAIN_NORM))


def test_rms_norm_takes_the_mean_over_the_first_channels():
    x, weight = torch.randn(4, 16), torch.ones(16)
    out = norm.rms_norm(x, weight, 0.0, None, None, 4, False, False, None)
    torch.testing.assert_close(out, x / x[:, :4].pow(2).mean(-1, keepdim=True).sqrt())


def test_rms_norm_can_round_before_the_weight():
    x, weight = torch.randn(32, 64, dtype=torch.bfloat16), torch.rand(64)
    early = norm.rms_norm(x, weight, 1e-6, None, None, None, True, False, None)
    unit = norm.rms_norm(x, torch.ones(64), 1e-6, None, None, *PLAIN_NORM)
    assert early.dtype == torch.float32
    torch.testing.assert_close(early, unit.float() * weight)


def test_rms_norm_can_keep_the_residual_in_float32():
    x, residual = torch.randn(2, 4, 16).to(torch.bfloat16)
    weight = torch.ones(16)
    _, wide = norm.rms_norm(x, weight, 1e-6, residual, None, None, False, True, None)
    _, narrow = norm.rms_norm(x, weight, 1e-6, residual, None, *PLAIN_NORM)
    assert wide.dtype == torch.float32 and narrow.dtype == torch.bfloat16
    torch.testing.assert_close(wide, x.float() + residual.float())


@pytest.mark.parametrize(("width", "variance_size"), [(8, None), (16, 32)])
def test_rms_norm_refuses_sizes_that_do_not_fit(width, variance_size):
    with pytest.raises(ValueError, match="hidden size"):
        norm.rms_norm(
            torch.zeros(1, width), torch.ones(16), 1e-6, None, None, variance_size, False, False,
            None,
        )  # fmt: skip


def rotated(vector, position, inverse_frequencies, neox):
    """Turn one head as complex numbers, one pair of channels at a time."""
    half = len(inverse_frequencies)
    pairs = [(i, i + half) if neox else (2 * i, 2 * i + 1) for i in range(half)]
    out = list(vector)
    for (a, b), frequency in zip(pairs, inverse_frequencies, strict=True):
        turned = complex(vector[a], vector[b]) * complex(
            math.cos(position * frequency), math.sin(position * frequency)
        )
        out[a], out[b] = turned.real, turned.imag
    return out


@pytest.mark.parametrize("neox", [True, False])
@pytest.mark.parametrize("rotary_dim", [8, 4])
def test_rotary_embedding_turns_pairs_of_channels(neox, rotary_dim):
    head, tokens = 8, 3
    frequencies = [10000 ** (-2 * i / rotary_dim) for i in range(rotary_dim // 2)]
    angles = torch.arange(32)[:, None] * torch.tensor(frequencies)
    cache = torch.cat((angles.cos(), angles.sin()), dim=-1)
    positions, offsets = torch.tensor([0, 5, 9]), torch.tensor([1, 0, 2])
    query, key = torch.randn(tokens, 2 * head), torch.randn(tokens, 1, head)
    q, k = rope.rotary_embedding(positions, query, key, cache, head, rotary_dim, neox, offsets)
    assert q.shape == query.shape and k.shape == key.shape
    for token in range(tokens):
        position = int(positions[token] + offsets[token])
        for row, turned in (
            (query.view(tokens, 2, head)[token, 1], q.view(tokens, 2, head)[token, 1]),
            (key[token, 0], k[token, 0]),
        ):
            expected = rotated(row.tolist(), position, frequencies, neox)
            assert turned.tolist() == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("scoring", ["softmax", "sigmoid", "sqrtsoftplus"])
def test_topk_routing_weighs_by_score_and_chooses_by_bias(scoring):
    logits, bias = torch.randn(6, 8), torch.zeros(8)
    bias[3] = 100.0
    score = {
        "softmax": lambda v: v.softmax(-1),
        "sigmoid": torch.sigmoid,
        "sqrtsoftplus": lambda v: F.softplus(v).sqrt(),
    }[scoring](logits)
    weights, ids = moe.topk_routing(logits, 2, False, bias, scoring)
    assert ids.dtype == torch.int32 and bool((ids[:, 0] == 3).all())
    torch.testing.assert_close(weights, score.gather(1, ids.long()))
    normed, _ = moe.topk_routing(logits, 2, True, bias, scoring)
    torch.testing.assert_close(normed, weights / weights.sum(-1, keepdim=True))


def test_topk_routing_refuses_an_unknown_score():
    with pytest.raises(ValueError, match="scoring"):
        moe.topk_routing(torch.zeros(1, 4), 1, True, None, "tanh")


def test_grouped_routing_keeps_to_the_best_groups():
    logits, bias = torch.randn(50, 12), torch.rand(12)
    groups, kept, topk, scale = 4, 2, 3, 2.5
    weights, ids = moe.grouped_topk_routing(logits, bias, topk, True, groups, kept, scale, True, 0)
    for token in range(logits.shape[0]):
        score = [1 / (1 + math.exp(-v)) for v in logits[token].tolist()]
        biased = [s + b for s, b in zip(score, bias.tolist(), strict=True)]
        parts = [biased[3 * g : 3 * g + 3] for g in range(groups)]
        best = sorted(range(groups), key=lambda g: -sum(sorted(parts[g])[-2:]))[:kept]
        allowed = [e for e in range(12) if e // 3 in best]
        chosen = sorted(allowed, key=lambda e: -biased[e])[:topk]
        assert ids[token].tolist() == chosen
        total = sum(score[e] for e in chosen)
        expected = [score[e] / total * scale for e in chosen]
        assert weights[token].tolist() == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize(
    ("renormalise", "apply_scale", "shared"), [(True, True, 1), (False, True, 0)]
)
def test_grouped_routing_refuses_what_releases_disagree_on(renormalise, apply_scale, shared):
    with pytest.raises(ValueError, match="does not cover"):
        moe.grouped_topk_routing(
            torch.zeros(1, 4), torch.zeros(4), 1, renormalise, 2, 1, 2.0, apply_scale, shared
        )


def test_fused_experts_sums_each_tokens_experts():
    x, w13, w2 = torch.randn(5, 8), torch.randn(4, 12, 8), torch.randn(4, 8, 6)
    ids = torch.tensor([[0, 1], [1, 3], [3, 0], [2, -1], [-1, -1]], dtype=torch.int32)
    weights = torch.rand(5, 2)
    expected = torch.zeros(5, 8)
    for token in range(5):
        for slot in range(2):
            expert = int(ids[token, slot])
            if expert >= 0:
                gate, up = (w13[expert] @ x[token]).chunk(2)
                expected[token] += weights[token, slot] * (w2[expert] @ (F.silu(gate) * up))
    out = moe.fused_experts(x, w13, w2, weights, ids, "silu", False, False, None, None, 1)
    torch.testing.assert_close(out, expected)


@pytest.mark.parametrize(
    "variant",
    [
        ("gelu", False, False, None, None),
        ("silu", True, False, None, None),
        ("silu", False, True, None, None),
        ("silu", False, False, 1.702, None),
        ("silu", False, False, None, 7.0),
    ],
)
def test_fused_experts_refuses_other_experts(variant):
    x, w13, w2 = torch.zeros(1, 4), torch.zeros(1, 4, 4), torch.zeros(1, 4, 2)
    ids = torch.zeros(1, 1, dtype=torch.int32)
    with pytest.raises(ValueError, match="fused_experts"):
        moe.fused_experts(x, w13, w2, torch.ones(1, 1), ids, *variant, 1)


def test_shared_expert_gate():
    hidden, shared, total = torch.randn(3, 6, 8)
    gate = torch.randn(1, 8)
    factor = torch.sigmoid((hidden * gate).sum(-1, keepdim=True))
    torch.testing.assert_close(elementwise.gate_sigmoid_mul(hidden, gate, shared), factor * shared)
    expected = total + factor * shared
    assert elementwise.gate_sigmoid_mul_add(hidden, gate, shared, total) is None
    torch.testing.assert_close(total, expected)

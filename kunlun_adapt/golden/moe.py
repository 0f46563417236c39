"""References for expert routing and experts."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from kunlun_adapt.golden.activation import silu_and_mul

# Keeps a row whose chosen scores are all zero finite; the same constant as SGLang's.
RENORMALISE_EPSILON = 1e-20


def topk_routing(
    logits: Tensor, topk: int, renormalise: bool, bias: Tensor | None, scoring: str
) -> tuple[Tensor, Tensor]:
    """Return the weights (float32) and ids (int32) of each token's ``topk`` experts.

    logits is [tokens, experts]; both results are [tokens, topk], best first. ``scoring`` is
    softmax, sigmoid or sqrtsoftplus, in float32. ``bias`` ([experts]) moves the choice, not the
    weights. With ``renormalise`` the weights of a token sum to one.
    Raises ValueError for an unknown scoring.
    """
    scores = _score(logits, scoring)
    choice = scores if bias is None else scores + bias.to(torch.float32)
    ids = torch.topk(choice, topk, dim=-1).indices
    weights = scores.gather(1, ids)
    if renormalise:
        weights = weights / (weights.sum(dim=-1, keepdim=True) + RENORMALISE_EPSILON)
    return weights, ids.to(torch.int32)


def grouped_topk_routing(
    logits: Tensor,
    bias: Tensor,
    topk: int,
    renormalise: bool,
    groups: int,
    topk_groups: int,
    scale: float | None,
    apply_scale: bool,
    fused_shared: int,
) -> tuple[Tensor, Tensor]:
    """Return the weights (float32) and ids (int32) of sigmoid routing limited to expert groups.

    logits is [tokens, experts], bias [experts]; both results are [tokens, topk], best first. The
    ``topk_groups`` groups with the largest sums of their two best biased scores stay; of their
    experts the ``topk`` best biased scores are chosen. Weights are the unbiased scores,
    renormalised if asked for, times ``scale`` if ``apply_scale``.
    Raises ValueError for shared experts fused into the routing, whose meaning changed between
    releases, and for a scale without renormalisation, which releases before 0.5.23 do not apply.
    """
    if fused_shared:
        raise ValueError("grouped routing does not cover fused shared experts")
    if apply_scale and not renormalise:
        raise ValueError("grouped routing does not cover a scale without renormalisation")
    scores = logits.to(torch.float32).sigmoid()
    tokens, experts = scores.shape
    choice = scores + bias.to(torch.float32)
    best_two = choice.view(tokens, groups, -1).topk(2, dim=-1).values.sum(dim=-1)
    kept = torch.zeros_like(best_two, dtype=torch.bool)
    kept.scatter_(1, best_two.topk(topk_groups, dim=-1).indices, True)
    kept = kept.repeat_interleave(experts // groups, dim=-1)
    ids = choice.masked_fill(~kept, float("-inf")).topk(topk, dim=-1).indices
    weights = scores.gather(1, ids)
    if renormalise:
        weights = weights / (weights.sum(dim=-1, keepdim=True) + RENORMALISE_EPSILON)
    if apply_scale and scale is not None:
        weights = weights * scale
    return weights, ids.to(torch.int32)


def fused_experts(
    x: Tensor,
    w13: Tensor,
    w2: Tensor,
    topk_weights: Tensor,
    topk_ids: Tensor,
    activation: str,
    with_bias: bool,
    weights_on_input: bool,
    swiglu_alpha: float | None,
    swiglu_limit: float | None,
    ep_size: int,
) -> Tensor:
    """Return the weighted sum of each token's experts, [tokens, hidden] in x's dtype.

    x is [tokens, hidden], w13 [experts, 2*width, hidden] with the gate first, w2 [experts, hidden,
    width], topk_weights and topk_ids [tokens, topk]. An id outside the local experts adds nothing
    (expert parallelism marks remote experts with -1). Products accumulate as torch's matmul does in
    x's dtype, the sum over experts in float32.
    Raises ValueError for variants it does not cover: another activation, biases, weights applied to
    the input, clamped activations.
    """
    refuse_variants(activation, with_bias, weights_on_input, swiglu_alpha, swiglu_limit)
    total = torch.zeros(x.shape, dtype=torch.float32, device=x.device)
    for expert in range(w13.shape[0]):
        token, slot = torch.nonzero(topk_ids == expert, as_tuple=True)
        if token.numel() == 0:
            continue
        inner = silu_and_mul(F.linear(x[token], w13[expert]), None)
        rows = F.linear(inner, w2[expert]).to(torch.float32)
        total.index_add_(0, token, rows * topk_weights[token, slot].unsqueeze(-1))
    return total.to(x.dtype)


def experts_result(
    x: Tensor,
    w13: Tensor,
    w2: Tensor,
    topk_weights: Tensor,
    topk_ids: Tensor,
    activation: str,
    with_bias: bool,
    weights_on_input: bool,
    swiglu_alpha: float | None,
    swiglu_limit: float | None,
    ep_size: int,
) -> Tensor:
    """Return a tensor of the form of fused_experts' result, without the waits of computing it."""
    return torch.empty_like(x)


def refuse_variants(
    activation: str,
    with_bias: bool,
    weights_on_input: bool,
    swiglu_alpha: float | None,
    swiglu_limit: float | None,
) -> None:
    """Raise ValueError for expert variants outside the operator's meaning."""
    if activation != "silu":
        raise ValueError(f"fused_experts computes silu experts, not {activation}")
    if with_bias or weights_on_input or swiglu_alpha is not None or swiglu_limit is not None:
        raise ValueError(
            "fused_experts has no expert biases, no weights on the input and no clamped activation"
        )


def _score(logits: Tensor, scoring: str) -> Tensor:
    value = logits.to(torch.float32)
    if scoring == "softmax":
        return value.softmax(dim=-1)
    if scoring == "sigmoid":
        return value.sigmoid()
    if scoring == "sqrtsoftplus":
        return F.softplus(value).sqrt()
    raise ValueError(f"unknown scoring function {scoring!r}")

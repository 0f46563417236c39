"""Vendor kernels for expert routing and experts, and the wrapper that upstream's callers expect."""

from __future__ import annotations

from typing import Any

import kunlun_ops
import torch
from torch import Tensor


def softmax_topk_norm(
    logits: Tensor, topk: int, renormalise: bool, bias: Tensor | None, scoring: str
) -> tuple[Tensor, Tensor]:
    """Return renormalised softmax routing by ``kunlun_ops.moe_softmax_topk_norm``.

    logits is [tokens, experts]; the results are [tokens, topk], float32 weights and int32 ids.
    """
    weights, ids = _routing_buffers(logits, topk)
    kunlun_ops.moe_softmax_topk_norm(logits.float().contiguous(), weights, ids, None, False)
    return weights, ids


def softmax_topk(
    logits: Tensor,
    topk: int,
    renormalise: bool,
    bias: Tensor | None,
    scoring: str,
    *,
    clusters: int,
) -> tuple[Tensor, Tensor]:
    """Return softmax routing without renormalisation by ``kunlun_ops.moe_softmax_topk``.

    The routing statistic has one row for each of the device's ``clusters``.
    """
    weights, ids = _routing_buffers(logits, topk)
    statistic = _statistic(logits, clusters)
    kunlun_ops.moe_softmax_topk(logits.float().contiguous(), weights, ids, statistic)
    return weights, ids


def sigmoid_group_topk_norm(
    logits: Tensor,
    bias: Tensor,
    topk: int,
    renormalise: bool,
    groups: int,
    topk_groups: int,
    scale: float | None,
    apply_scale: bool,
    fused_shared: int,
    *,
    clusters: int,
) -> tuple[Tensor, Tensor]:
    """Return renormalised grouped sigmoid routing by ``kunlun_ops.moe_sigmoid_group_topk_norm``.

    The op always multiplies by its scale, so a scale that upstream applies elsewhere goes in as 1.
    Its statistic has one row for each of the device's ``clusters``.
    """
    weights, ids = _routing_buffers(logits, topk)
    kunlun_ops.moe_sigmoid_group_topk_norm(
        x=logits.float().contiguous(),
        topk_index=ids,
        norm_score=weights,
        block_static=_statistic(logits, clusters),
        bias=bias.float(),
        scale=float(scale) if apply_scale and scale is not None else 1.0,
        n_group=groups,
        topk_group=topk_groups,
    )
    return weights, ids


def experts_small(
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
    """Return the experts' output through the fused op for small batches, [tokens, hidden]."""
    ops = torch.ops.xspeedgate_ops
    experts = w13.shape[0]
    ids = topk_ids.to(torch.int32)
    index, lod, _ = ops.moe_pre_small(ids, experts, False, False, x)
    active = ops.moe_active_expert_balance(ids, experts, False)
    # The op weights each row itself, in the activations' dtype; the sum over topk is left to us.
    rows = ops.fused_moe(x, w13, w2, topk_weights.to(x.dtype), lod, index, active)
    return rows.sum(dim=1, dtype=torch.float32).to(x.dtype)


def experts_presorted(
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
    *,
    sort: str,
    fused_activation: bool,
    clusters: int,
) -> Tensor:
    """Return the experts' output through two grouped GEMMs, [tokens, hidden].

    ``sort`` picks how tokens are ordered by expert: ``small`` (one op for small batches) or
    ``block`` (statistics first, one row for each of the device's ``clusters``).
    ``fused_activation`` lets the first GEMM apply SwiGLU.
    """
    tokens, topk = topk_ids.shape
    hidden, width = x.shape[-1], w2.shape[-1]
    ids = topk_ids.to(torch.int32)
    if sort == "small":
        rows, index, lod = _sort_small(x, ids, w13.shape[0])
    else:
        rows, index, lod = _sort_by_block(x, ids, w13.shape[0], clusters)
    gated = x.new_empty((tokens, topk, 2 * width))
    kunlun_ops.moe_fc(
        x=rows,
        weight=w13,
        sorted_tokens_num_lod=lod,
        sorted_tokens_idx=index,
        moe_topk=topk,
        y=gated,
        act="SWISH_GLU" if fused_activation else None,
        topk_ids=ids,
        sort_mode=True,
    )
    if fused_activation:
        # The buffer is full width and only its first half holds the result.
        inner = gated[..., :width].contiguous()
    else:
        inner = x.new_empty((tokens, topk, width))
        kunlun_ops.swiglu(gated, inner)
    outer = x.new_empty((tokens, topk, hidden))
    kunlun_ops.moe_fc(
        x=inner.view(tokens * topk, width),
        weight=w2,
        sorted_tokens_num_lod=lod,
        sorted_tokens_idx=index,
        moe_topk=topk,
        y=outer,
        topk_ids=ids,
        sort_mode=True,
    )
    weights = topk_weights.to(torch.float32)
    # A fresh buffer: writing into the activations, as one public caller does, loses a residual
    # that still points there.
    out = torch.empty_like(x)
    kunlun_ops.moe_post(outer, index.view(tokens, topk), weights, torch.ones_like(weights), out)
    return out


def standard_combine_input(hidden_states: Tensor) -> Any:
    """Wrap the experts' output as SGLang's layer hands it to the token dispatcher."""
    from sglang.srt.layers.moe.token_dispatcher import StandardCombineInput

    return StandardCombineInput(hidden_states=hidden_states)


def _sort_small(x: Tensor, ids: Tensor, experts: int) -> tuple[Tensor, Tensor, Tensor]:
    index, lod, rows = torch.ops.xspeedgate_ops.moe_pre_small(ids, experts, False, True, x)
    return rows, index, lod


def _sort_by_block(
    x: Tensor, ids: Tensor, experts: int, clusters: int
) -> tuple[Tensor, Tensor, Tensor]:
    pairs = ids.numel()
    integers = {"dtype": torch.int32, "device": x.device}
    statistic = torch.zeros((clusters, experts), **integers)
    kunlun_ops.gen_block_statistic(ids, statistic)
    rows = x.new_empty((pairs, x.shape[-1]))
    index = torch.zeros(pairs, **integers)
    expert_rows = torch.zeros(experts, **integers)
    lod = torch.zeros(experts + 1, **integers)
    kunlun_ops.moe_pre_sorted(
        x, ids, statistic, rows, index, expert_rows, lod, index_have_neg=False
    )
    return rows, index, lod


def _routing_buffers(logits: Tensor, topk: int) -> tuple[Tensor, Tensor]:
    shape = (logits.shape[0], topk)
    weights = torch.empty(shape, dtype=torch.float32, device=logits.device)
    ids = torch.empty(shape, dtype=torch.int32, device=logits.device)
    return weights, ids


def _statistic(logits: Tensor, clusters: int) -> Tensor:
    return torch.zeros((clusters, logits.shape[1]), dtype=torch.int32, device=logits.device)

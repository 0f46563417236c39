"""Simulated vendor ops for expert routing and experts.

Two orders of the (token, slot) pairs occur. ``sort_mode=True`` (for the grouped GEMMs) hands out
where each pair's row lies among the rows in expert order; ``sort_mode=False`` (for the fused op)
hands out which pair each such row came from.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from kunlun_adapt.golden import moe as golden
from kunlun_adapt.golden.activation import silu_and_mul
from kunlun_adapt.simulator.contract import ContractError, simulated

_FUSED = "torch.ops.xspeedgate_ops.fused_moe"


@simulated("kunlun_ops.moe_softmax_topk")
def moe_softmax_topk(
    x: Tensor, normed_score: Tensor, topk_index: Tensor, block_statistic: Tensor | None
) -> None:
    """Write softmax routing without renormalisation, and the block statistics."""
    _route(x, normed_score, topk_index, block_statistic, renormalise=False)


@simulated("kunlun_ops.moe_softmax_topk_norm")
def moe_softmax_topk_norm(
    x: Tensor,
    normed_score: Tensor,
    topk_index: Tensor,
    block_statistic: Tensor | None,
    stable: bool,
) -> None:
    """Write renormalised softmax routing, and the block statistics."""
    _route(x, normed_score, topk_index, block_statistic, renormalise=True)


@simulated("kunlun_ops.moe_sigmoid_group_topk_norm")
def moe_sigmoid_group_topk_norm(
    x: Tensor,
    topk_index: Tensor,
    norm_score: Tensor,
    block_static: Tensor,
    bias: Tensor,
    scale: float,
    n_group: int,
    topk_group: int,
) -> None:
    """Write renormalised, scaled sigmoid routing limited to groups, and the block statistics."""
    topk = topk_index.shape[1]
    weights, ids = golden.grouped_topk_routing(
        x, bias, topk, True, n_group, topk_group, scale, True, 0
    )
    norm_score.copy_(weights)
    topk_index.copy_(ids)
    experts = x.shape[1]
    block_static[:, :experts].copy_(_block_counts(ids, experts, block_static.shape[0]))


@simulated("kunlun_ops.gen_block_statistic")
def gen_block_statistic(topk_ids: Tensor, block_statistic: Tensor) -> None:
    """Write each block's count of rows per expert."""
    blocks, experts = block_statistic.shape
    block_statistic.copy_(_block_counts(topk_ids, experts, blocks))


@simulated("kunlun_ops.moe_pre_sorted")
def moe_pre_sorted(
    x: Tensor,
    topk_index: Tensor,
    block_statistic: Tensor,
    moe_expand: Tensor,
    moe_index: Tensor,
    expert_m: Tensor,
    sorted_tokens_num_lod: Tensor,
    index_have_neg: bool,
) -> None:
    """Write the tokens in expert order, each pair's row, and the experts' counts and bounds."""
    op = "kunlun_ops.moe_pre_sorted"
    blocks, experts = block_statistic.shape
    _refuse_negative(op, topk_index, experts, index_have_neg)
    if not torch.equal(block_statistic, _block_counts(topk_index, experts, blocks)):
        raise ContractError(op, "block_statistic does not belong to topk_index")
    order, row_of_pair, lod = _order(topk_index, experts)
    moe_expand.copy_(x[order // topk_index.shape[1]])
    moe_index.copy_(row_of_pair)
    expert_m.copy_(lod.diff())
    sorted_tokens_num_lod.copy_(lod)


@simulated("kunlun_ops.moe_fc")
def moe_fc(
    x: Tensor,
    weight: Tensor,
    sorted_tokens_num_lod: Tensor,
    sorted_tokens_idx: Tensor,
    moe_topk: int,
    y: Tensor,
    act: str | None,
    x_perchannel_max: None,
    w_perchannel_max: None,
    topk_ids: Tensor | None,
    topk_w: None,
    bias: None,
    tgemm_type: None,
    tweight_type: None,
    scale_n: None,
    scale_k: None,
    use_pack_int4: bool | None,
    sort_mode: bool,
) -> None:
    """Write x @ weight[expert]^T row by row; SWISH_GLU leaves its result in the first half."""
    op = "kunlun_ops.moe_fc"
    bounds = _bounds(op, sorted_tokens_num_lod, x.shape[0])
    _refuse_no_permutation(op, "sorted_tokens_idx", sorted_tokens_idx)
    rows = torch.empty((x.shape[0], weight.shape[1]), dtype=x.dtype, device=x.device)
    for expert in range(weight.shape[0]):
        part = slice(bounds[expert], bounds[expert + 1])
        rows[part] = F.linear(x[part], weight[expert])
    if act == "SWISH_GLU":
        half = rows.shape[1] // 2
        rows[:, :half] = silu_and_mul(rows, None)
        # What the device leaves in the other half is not defined; nobody may read it.
        rows[:, half:] = float("nan")
    y.copy_(rows.view(y.shape))


@simulated("kunlun_ops.moe_post")
def moe_post(
    x: Tensor, moe_index: Tensor, normed_scale: Tensor, dequant_scale: Tensor, y: Tensor
) -> None:
    """Write the weighted sum of each token's rows."""
    rows = x.reshape(-1, x.shape[-1]).to(torch.float32)
    if rows.shape[0] != moe_index.numel():
        raise ContractError(
            "kunlun_ops.moe_post", f"{rows.shape[0]} rows for {moe_index.numel()} indices"
        )
    _refuse_no_permutation("kunlun_ops.moe_post", "moe_index", moe_index)
    factors = normed_scale.to(torch.float32) * dequant_scale
    y.copy_((rows[moe_index.long()] * factors.unsqueeze(-1)).sum(dim=1))


@simulated("torch.ops.xspeedgate_ops.moe_pre_small")
def moe_pre_small(
    topk_ids: Tensor, num_experts: int, index_have_neg: bool, sort_mode: bool, x: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the pairs' index, the experts' bounds and the tokens in expert order."""
    op = "torch.ops.xspeedgate_ops.moe_pre_small"
    _refuse_negative(op, topk_ids, num_experts, index_have_neg)
    order, row_of_pair, lod = _order(topk_ids, num_experts)
    index = row_of_pair if sort_mode else order
    return index.to(torch.int32), lod.to(torch.int32), x[order // topk_ids.shape[1]]


@simulated("torch.ops.xspeedgate_ops.moe_active_expert_balance")
def moe_active_expert_balance(topk_ids: Tensor, num_experts: int, flag: bool) -> Tensor:
    """Return prefix counts of the experts that have rows, [experts + 1]."""
    _, _, lod = _order(topk_ids, num_experts)
    return _active(lod).to(torch.int32)


@simulated(_FUSED)
def fused_moe(
    hidden_states: Tensor,
    w1: Tensor,
    w2: Tensor,
    normed_score: Tensor,
    sorted_tokens_num_lod: Tensor,
    sorted_tokens_idx: Tensor,
    experts_num_lod: Tensor,
) -> Tensor:
    """Return each pair's weighted expert output, [tokens, topk, hidden]."""
    tokens, topk = normed_score.shape
    bounds = _bounds(_FUSED, sorted_tokens_num_lod, tokens * topk)
    _refuse_no_permutation(_FUSED, "sorted_tokens_idx", sorted_tokens_idx)
    if not torch.equal(experts_num_lod.long(), _active(sorted_tokens_num_lod.long())):
        raise ContractError(_FUSED, "experts_num_lod does not belong to sorted_tokens_num_lod")
    order = sorted_tokens_idx.long()
    rows = hidden_states.new_empty((tokens * topk, hidden_states.shape[1]))
    for expert in range(w1.shape[0]):
        pairs = order[bounds[expert] : bounds[expert + 1]]
        inner = silu_and_mul(F.linear(hidden_states[pairs // topk], w1[expert]), None)
        rows[pairs] = F.linear(inner, w2[expert])
    return rows.view(tokens, topk, -1) * normed_score.unsqueeze(-1)


def _route(
    x: Tensor,
    normed_score: Tensor,
    topk_index: Tensor,
    block_statistic: Tensor | None,
    renormalise: bool,
) -> None:
    topk = topk_index.shape[1]
    weights, ids = golden.topk_routing(x, topk, renormalise, None, "softmax")
    normed_score.copy_(weights)
    topk_index.copy_(ids)
    if block_statistic is not None:
        blocks, experts = block_statistic.shape
        block_statistic.copy_(_block_counts(ids, experts, blocks))


def _order(ids: Tensor, experts: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return the pairs in expert order (stable), each pair's place in it, and the bounds."""
    flat = ids.flatten().long()
    order = torch.argsort(flat, stable=True)
    place = torch.empty_like(order)
    place[order] = torch.arange(order.numel(), device=order.device)
    counts = torch.bincount(flat, minlength=experts)
    return order, place, F.pad(counts.cumsum(0), (1, 0))


def _block_counts(ids: Tensor, experts: int, blocks: int) -> Tensor:
    """Count experts per block of consecutive pairs; ids outside the local experts do not count."""
    counts = torch.zeros((blocks, experts), dtype=torch.int32, device=ids.device)
    for row, part in zip(counts, ids.flatten().long().tensor_split(blocks), strict=True):
        local = part[(part >= 0) & (part < experts)]
        row.copy_(torch.bincount(local, minlength=experts))
    return counts


def _active(lod: Tensor) -> Tensor:
    return F.pad((lod.diff() > 0).long().cumsum(0), (1, 0))


def _bounds(op: str, lod: Tensor, rows: int) -> list[int]:
    bounds = [int(value) for value in lod.tolist()]
    if bounds[0] != 0 or bounds[-1] != rows or sorted(bounds) != bounds:
        raise ContractError(op, f"sorted_tokens_num_lod {bounds} does not divide {rows} rows")
    return bounds


def _refuse_negative(op: str, ids: Tensor, experts: int, index_have_neg: bool) -> None:
    if index_have_neg:
        raise ContractError(op, "index_have_neg is not simulated (expert parallelism)")
    if ids.numel() and (int(ids.min()) < 0 or int(ids.max()) >= experts):
        raise ContractError(op, f"ids outside 0..{experts - 1} without index_have_neg")


def _refuse_no_permutation(op: str, name: str, index: Tensor) -> None:
    flat = index.flatten().long()
    if not torch.equal(flat.sort().values, torch.arange(flat.numel(), device=flat.device)):
        raise ContractError(op, f"{name} does not name every row once")

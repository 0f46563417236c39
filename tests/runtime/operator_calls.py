"""A few calls of every shipped operator, and the upstream calls in which they arrive."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import torch

from kunlun_adapt.plan import KernelBinding
from kunlun_adapt.upstream import Symbol

Values = dict[str, Any]


def _rows(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(*shape).to(dtype)


def _prefill(prefix: int, new: int) -> Values:
    total = prefix + new
    return {
        "q": _rows(new, 4, 64),
        "key": _rows(new, 2, 64),
        "value": _rows(new, 2, 64),
        "key_cache": _rows(4, 2, 16, 64),
        "value_cache": _rows(4, 2, 16, 64),
        "out": torch.zeros(new, 4, 64),
        "block_table": torch.tensor([[0, 1, 2]], dtype=torch.int32),
        "q_lod_cpu": torch.tensor([0, new], dtype=torch.int32),
        "q_lod": torch.tensor([0, new], dtype=torch.int32),
        "kv_lod_cpu": torch.tensor([0, total], dtype=torch.int32),
        "kv_lod": torch.tensor([0, total], dtype=torch.int32),
        "q_total": new,
        "kv_total": total,
        "scale": 0.125,
        "window": -1,
    }


def _decode(lens: list[int]) -> Values:
    return {
        "q": _rows(len(lens), 1, 4, 64),
        "key_cache": _rows(4, 2, 16, 64),
        "value_cache": _rows(4, 2, 16, 64),
        "out": torch.zeros(len(lens), 1, 4, 64),
        "block_table": torch.tensor([[0, 1], [2, 3]], dtype=torch.int32),
        "seq_lens_cpu": torch.tensor(lens, dtype=torch.int32),
        "seq_lens": torch.tensor(lens, dtype=torch.int32),
        "max_seq_len": max(lens),
        "scale": 0.125,
        "window": -1,
    }


def _latent_decode(dtype: torch.dtype, rank: int, rope: int) -> Values:
    return {
        "q": _rows(2, 1, 4, rank + rope, dtype=dtype),
        "kv_cache": _rows(4, 16, rank + rope, dtype=dtype),
        "out": torch.zeros(2, 1, 4, rank, dtype=dtype),
        "block_table": torch.tensor([[0, 1], [2, 3]], dtype=torch.int32),
        "seq_lens_cpu": torch.tensor([3, 20], dtype=torch.int32),
        "seq_lens": torch.tensor([3, 20], dtype=torch.int32),
        "max_seq_len": 20,
        "scale": 0.1,
    }


def _latent_prefill(dtype: torch.dtype, rank: int, rope: int) -> Values:
    return {
        "q": _rows(5, 4, rank + rope, dtype=dtype),
        "kv_cache": _rows(4, 16, rank + rope, dtype=dtype),
        "out": torch.zeros(5, 4, rank, dtype=dtype),
        "block_table": torch.tensor([[0, 1]], dtype=torch.int32),
        "q_lod_cpu": torch.tensor([0, 5], dtype=torch.int32),
        "q_lod": torch.tensor([0, 5], dtype=torch.int32),
        "kv_lod_cpu": torch.tensor([0, 17], dtype=torch.int32),
        "kv_lod": torch.tensor([0, 17], dtype=torch.int32),
        "max_seq_len": 17,
        "scale": 0.1,
    }


def _experts(tokens: int, ep_size: int = 1) -> Values:
    return {
        "x": _rows(tokens, 32),
        "w13": _rows(4, 32, 32),
        "w2": _rows(4, 32, 16),
        "topk_weights": torch.softmax(_rows(tokens, 2), -1),
        "topk_ids": torch.stack([torch.randperm(4)[:2] for _ in range(tokens)]).to(torch.int32),
        "activation": "silu",
        "with_bias": False,
        "weights_on_input": False,
        "swiglu_alpha": None,
        "swiglu_limit": None,
        "ep_size": ep_size,
    }


def _norm(residual: bool, **changed: Any) -> Values:
    return {
        "x": _rows(5, 64),
        "weight": _rows(64),
        "eps": 1e-6,
        "residual": _rows(5, 64) if residual else None,
        "post_residual_addition": None,
        "variance_size": None,
        "cast_first": False,
        "fp32_residual": False,
        "out_dtype": None,
        **changed,
    }


def _rotary(rotary: int) -> Values:
    return {
        "positions": torch.arange(5),
        "query": _rows(5, 4 * 32),
        "key": _rows(5, 2 * 32),
        "cos_sin_cache": _rows(64, rotary),
        "head_size": 32,
        "rotary_dim": rotary,
        "is_neox": True,
        "offsets": None,
    }


def _gate() -> Values:
    return {"hidden": _rows(5, 64), "gate_weight": _rows(1, 64), "shared": _rows(5, 64)}


def _store(v_dim: int) -> Values:
    return {
        "key": _rows(3, 2, 8),
        "value": _rows(3, 2, v_dim),
        "key_cache": torch.zeros(2, 2, 16, 8),
        "value_cache": torch.zeros(2, 2, 16, v_dim),
        "slots": torch.tensor([1, 17, 4]),
    }


def _store_latent(rope: int | None, dtype: torch.dtype) -> Values:
    return {
        "latent": _rows(3, 16, dtype=dtype),
        "rope": None if rope is None else _rows(3, rope, dtype=dtype),
        "kv_cache": torch.zeros(2, 16, 16 + (rope or 0), dtype=dtype),
        "slots": torch.tensor([1, 17, 4]),
    }


def _topk() -> Values:
    values = {"logits": _rows(5, 8), "topk": 2, "renormalise": True, "bias": None}
    return {**values, "scoring": "softmax"}


def _grouped(apply_scale: bool) -> Values:
    return {
        "logits": _rows(5, 8),
        "bias": _rows(8),
        "topk": 2,
        "renormalise": True,
        "groups": 4,
        "topk_groups": 2,
        "scale": 2.5,
        "apply_scale": apply_scale,
        "fused_shared": 0,
    }


def operator_calls() -> dict[str, list[Values]]:
    """Return calls of every operator by name, always the same; several where tiers differ."""
    torch.manual_seed(20)
    low, high = torch.bfloat16, torch.float32
    return {
        "silu_and_mul": [
            {"x": _rows(5, 64), "out": None},
            {"x": _rows(5, 64, dtype=torch.float64), "out": None},
        ],
        "paged_prefill_attention": [_prefill(0, 5), _prefill(12, 5)],
        "paged_decode_attention": [_decode([3, 20])],
        "gate_sigmoid_mul": [_gate()],
        "gate_sigmoid_mul_add": [{**_gate(), "total": _rows(5, 64)}],
        "store_kv_cache": [_store(8), _store(4)],
        "store_mla_cache": [
            _store_latent(8, low),
            _store_latent(8, high),
            _store_latent(None, high),
        ],
        "mla_decode_attention": [_latent_decode(low, 32, 8), _latent_decode(high, 32, 8)],
        "mla_prefill_attention": [_latent_prefill(low, 32, 8), _latent_prefill(high, 32, 8)],
        "moe_topk": [_topk()],
        "moe_grouped_topk": [_grouped(False), _grouped(True)],
        "fused_experts": [_experts(5), _experts(5, ep_size=2)],
        "rms_norm": [_norm(False), _norm(True), _norm(False, cast_first=True)],
        "rotary_embedding": [_rotary(32), _rotary(16)],
    }


def upstream_call(kernel: KernelBinding, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return upstream's keyword arguments that carry an operator's arguments."""
    assert isinstance(kernel.call, Symbol) and kernel.call.signature is not None
    given: dict[str, Any] = {}
    for param, path in kernel.bind.args.items():
        root, *rest = path.split(".")
        if not rest:
            given[root] = values[param]
            continue
        owner = given.setdefault(root, SimpleNamespace())
        for part in rest[:-1]:
            if not hasattr(owner, part):
                setattr(owner, part, SimpleNamespace())
            owner = getattr(owner, part)
        setattr(owner, rest[-1], values[param])
    for parameter in kernel.call.signature.parameters:
        if parameter.name not in given and parameter.default is None:
            given[parameter.name] = None
    return given

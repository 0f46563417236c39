"""Simulated vendor ops for rotary position embedding."""

from __future__ import annotations

from torch import Tensor

from kunlun_adapt.golden import rope as golden
from kunlun_adapt.simulator.contract import simulated


@simulated("kunlun_ops.rotary_embedding")
def rotary_embedding(
    positions: Tensor,
    query: Tensor,
    key: Tensor,
    head_size: int,
    cos_sin_cache: Tensor,
    is_neox: bool,
) -> None:
    """Turn query and key in place."""
    turned = golden.rotary_embedding(
        positions, query, key, cos_sin_cache, head_size, head_size, is_neox, None
    )
    query.copy_(turned[0])
    key.copy_(turned[1])

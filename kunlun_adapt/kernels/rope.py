"""Vendor kernels for rotary position embedding."""

from __future__ import annotations

import kunlun_ops
from torch import Tensor


def rotary_embedding(
    positions: Tensor,
    query: Tensor,
    key: Tensor,
    cos_sin_cache: Tensor,
    head_size: int,
    rotary_dim: int,
    is_neox: bool,
    offsets: Tensor | None,
) -> tuple[Tensor, Tensor]:
    """Return query and key rotated by ``kunlun_ops.rotary_embedding``.

    The op works in place on [tokens, heads*head_size]; the callers' tensors are views into a fused
    projection more often than not, so it is given copies and the copies are returned.
    """
    tokens = positions.numel()
    turned_query = _rows(query, tokens)
    turned_key = _rows(key, tokens)
    kunlun_ops.rotary_embedding(
        positions=positions.flatten(),
        query=turned_query,
        key=turned_key,
        head_size=head_size,
        cos_sin_cache=cos_sin_cache,
        is_neox=is_neox,
    )
    return turned_query.view(query.shape), turned_key.view(key.shape)


def _rows(x: Tensor, tokens: int) -> Tensor:
    rows = x.reshape(tokens, -1).contiguous()
    return rows.clone() if rows.data_ptr() == x.data_ptr() else rows

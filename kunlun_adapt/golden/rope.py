"""References for rotary position embedding."""

from __future__ import annotations

import torch
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
    """Return query and key rotated by their positions, as new tensors of their shapes and dtypes.

    positions is [tokens] or more dimensions, flattened; query and key are [tokens, heads*head_size]
    or [tokens, heads, head_size]; cos_sin_cache is [max_position, rotary_dim], cosines first.
    Only the first ``rotary_dim`` channels of a head turn: halves against each other in the neox
    style, neighbours in the GPT-J style. The turn is computed in the wider of the two dtypes.
    """
    where = positions if offsets is None else positions + offsets
    cos, sin = cos_sin_cache.index_select(0, where.flatten()).chunk(2, dim=-1)
    return (
        _turn(query, cos, sin, head_size, rotary_dim, is_neox),
        _turn(key, cos, sin, head_size, rotary_dim, is_neox),
    )


def _turn(
    x: Tensor, cos: Tensor, sin: Tensor, head_size: int, rotary_dim: int, is_neox: bool
) -> Tensor:
    heads = x.reshape(cos.shape[0], -1, head_size)
    rot, rest = heads[..., :rotary_dim], heads[..., rotary_dim:]
    if is_neox:
        first, second = rot.chunk(2, dim=-1)
    else:
        first, second = rot[..., ::2], rot[..., 1::2]
    cos, sin = cos.unsqueeze(-2), sin.unsqueeze(-2)
    turned_first = first * cos - second * sin
    turned_second = second * cos + first * sin
    if is_neox:
        turned = torch.cat((turned_first, turned_second), dim=-1)
    else:
        turned = torch.stack((turned_first, turned_second), dim=-1).flatten(-2)
    return torch.cat((turned.to(x.dtype), rest), dim=-1).reshape(x.shape)

"""References for gated activations."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


def silu_and_mul(x: Tensor, out: Tensor | None) -> Tensor:
    """Return silu(x[..., :d]) * x[..., d:] for x of shape [..., 2*d], in x's dtype.

    Computed in float32 and rounded once. Writes into ``out`` ([..., d]) when it is given and
    returns it. Raises ValueError when the last dimension is odd.
    """
    width = x.shape[-1]
    if width % 2:
        raise ValueError(f"silu_and_mul needs an even last dimension, got {width}")
    gate, up = x.to(torch.float32).split(width // 2, dim=-1)
    result = (F.silu(gate) * up).to(x.dtype)
    if out is None:
        return result
    out.copy_(result)
    return out

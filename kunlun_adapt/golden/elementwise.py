"""References for the shared-expert gate."""

from __future__ import annotations

import torch
from torch import Tensor


def gate_sigmoid_mul(hidden: Tensor, gate_weight: Tensor, shared: Tensor) -> Tensor:
    """Return shared * sigmoid(hidden . gate_weight), one gate per token.

    hidden and shared are [tokens, width], gate_weight holds ``width`` values in any shape.
    Computed in float32, returned in shared's dtype.
    """
    return (_gate(hidden, gate_weight) * shared.to(torch.float32)).to(shared.dtype)


def gate_sigmoid_mul_add(
    hidden: Tensor, gate_weight: Tensor, shared: Tensor, total: Tensor
) -> None:
    """Add shared * sigmoid(hidden . gate_weight) to ``total`` ([tokens, width]) in place.

    Computed in float32 and rounded once, to total's dtype.
    """
    gated = _gate(hidden, gate_weight) * shared.to(torch.float32)
    total.copy_(total.to(torch.float32) + gated)


def _gate(hidden: Tensor, gate_weight: Tensor) -> Tensor:
    logits = hidden.to(torch.float32) @ gate_weight.to(torch.float32).reshape(-1)
    return torch.sigmoid(logits).unsqueeze(-1)

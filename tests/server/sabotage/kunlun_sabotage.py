"""Implementations that are wrong on purpose."""

from __future__ import annotations

from typing import Any

import torch

from kunlun_adapt.golden.activation import silu_and_mul as golden


def silu_and_mul(x: torch.Tensor, out: torch.Tensor | None, **fixed: Any) -> torch.Tensor:
    """Right in shape and type, five percent off in value."""
    return golden(x, out).mul_(1.05)


def raises(call: Any) -> Any:
    """A hook that breaks as soon as upstream calls it."""
    raise RuntimeError("sabotaged hook was called")

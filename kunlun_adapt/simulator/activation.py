"""Simulated vendor ops for gated activations."""

from __future__ import annotations

from torch import Tensor

from kunlun_adapt.golden import activation as golden
from kunlun_adapt.simulator.contract import simulated


@simulated("kunlun_ops.swiglu")
def swiglu(x: Tensor, y: Tensor) -> None:
    """Write silu(x[..., :d]) * x[..., d:] into y."""
    golden.silu_and_mul(x, y)

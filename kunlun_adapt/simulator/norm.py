"""Simulated vendor ops for RMS normalisation."""

from __future__ import annotations

import torch
from torch import Tensor

from kunlun_adapt.golden import norm as golden
from kunlun_adapt.simulator.contract import simulated


@simulated("kunlun_ops.rmsnorm")
def rmsnorm(
    x: Tensor,
    weight: Tensor | None,
    output: Tensor,
    eps: float,
    interweave: bool,
    store_output_before_norm: bool,
    bias: None,
    residual_output: None,
    output_max: None,
) -> None:
    """Write the norm of x into output; a missing weight counts as ones."""
    scale = torch.ones(x.shape[-1], device=x.device) if weight is None else weight
    output.copy_(golden.rms_norm(x, scale, eps, None, None, None, False, False, None))


@simulated("kunlun_ops.add_rmsnorm")
def add_rmsnorm(
    x: Tensor,
    y: Tensor,
    weight: Tensor,
    output: Tensor,
    eps: float,
    interweaved: bool,
    store_output_before_norm: bool,
    bias: None,
    smooth: None,
    residual_output: Tensor | None,
    output_max: None,
) -> None:
    """Write the norm of x + y into output and, when asked for, the sum into residual_output."""
    normed, total = golden.rms_norm(x, weight, eps, y, None, None, False, False, None)
    output.copy_(normed)
    if residual_output is not None:
        residual_output.copy_(total)

"""Vendor kernels for RMS normalisation.

Both take the whole parameter list of the operator, since an adapter's parameters are the
operator's; the recipe's conditions keep away what the vendor ops cannot do.
"""

from __future__ import annotations

import kunlun_ops
import torch
from torch import Tensor


def rmsnorm(
    x: Tensor,
    weight: Tensor,
    eps: float,
    residual: Tensor | None,
    post_residual_addition: Tensor | None,
    variance_size: int | None,
    cast_first: bool,
    fp32_residual: bool,
    out_dtype: torch.dtype | None,
) -> Tensor:
    """Return x / sqrt(mean(x^2) + eps) * weight by ``kunlun_ops.rmsnorm``; x is contiguous."""
    output = torch.empty_like(x)
    # The positional form: with eps fourth and the output third. The older keyword form swaps them.
    kunlun_ops.rmsnorm(x, weight, output, eps)
    return output


def add_rmsnorm(
    x: Tensor,
    weight: Tensor,
    eps: float,
    residual: Tensor,
    post_residual_addition: Tensor | None,
    variance_size: int | None,
    cast_first: bool,
    fp32_residual: bool,
    out_dtype: torch.dtype | None,
) -> tuple[Tensor, Tensor]:
    """Return the norm of x + residual, and the sum, by ``kunlun_ops.add_rmsnorm``.

    x and residual are contiguous and of one dtype. The sum is asked for by ``residual_output``:
    without it the op returns only the norm.
    """
    output = torch.empty_like(x)
    total = torch.empty_like(residual)
    kunlun_ops.add_rmsnorm(x, residual, weight, output, eps, residual_output=total)
    return output, total

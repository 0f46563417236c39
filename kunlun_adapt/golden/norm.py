"""References for RMS normalisation."""

from __future__ import annotations

import torch
from torch import Tensor


def rms_norm(
    x: Tensor,
    weight: Tensor,
    eps: float,
    residual: Tensor | None,
    post_residual_addition: Tensor | None,
    variance_size: int | None,
    cast_first: bool,
    fp32_residual: bool,
    out_dtype: torch.dtype | None,
) -> Tensor | tuple[Tensor, Tensor]:
    """Return x / sqrt(mean(x^2) + eps) * weight; with a residual, of their sum, and that sum.

    x and residual are [..., hidden], weight is [hidden]. Computed in float32. The order and the
    roundings follow SGLang's ``RMSNorm.forward_native``: ``variance_size`` takes the mean over the
    first so many channels only, ``cast_first`` rounds before the weight is applied,
    ``fp32_residual`` returns the sum unrounded, ``out_dtype`` overrides the result's dtype, and
    ``post_residual_addition`` counts only together with a residual.
    Raises ValueError when the last dimension is not the weight's, or below ``variance_size``.
    """
    hidden = x.shape[-1]
    if hidden != weight.shape[-1]:
        raise ValueError(f"rms_norm: hidden size {hidden}, but the weight has {weight.shape[-1]}")
    if variance_size is not None and hidden < variance_size:
        raise ValueError(f"rms_norm: hidden size {hidden} is below variance size {variance_size}")
    result_dtype = out_dtype or x.dtype
    value = x.contiguous().to(torch.float32)
    total = None
    if residual is not None:
        value = value + residual.to(torch.float32)
        if post_residual_addition is not None:
            value = value + post_residual_addition.to(torch.float32)
        total = value.clone() if fp32_residual else value.to(result_dtype)
    variance = value[..., :variance_size].pow(2).mean(dim=-1, keepdim=True)
    value = value * torch.rsqrt(variance + eps)
    if cast_first:
        result = weight * value.to(result_dtype)
    else:
        result = (value * weight).to(result_dtype)
    return result if total is None else (result, total)

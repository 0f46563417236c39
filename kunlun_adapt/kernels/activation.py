"""Vendor kernels for gated activations."""

from __future__ import annotations

import kunlun_ops
from torch import Tensor


def swiglu(x: Tensor, out: Tensor | None) -> Tensor:
    """Return silu(x[..., :d]) * x[..., d:] by ``kunlun_ops.swiglu``, into ``out`` when given.

    x is contiguous [..., 2*d]; the result is [..., d] in x's dtype.
    """
    if out is None:
        out = x.new_empty((*x.shape[:-1], x.shape[-1] // 2))
    kunlun_ops.swiglu(x, out)
    return out

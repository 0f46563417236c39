"""Dispatch functions as one would write them in a plugin: the peers of `dispatch.py`.

Each asks the conditions of its operator's tiers and calls the same kernels with the same arguments;
none counts a call or asks whether torch.compile traces it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import bfloat16, float16, float32

Function = Callable[..., Any]
FLOATS = (float16, bfloat16, float32)


def rms_norm(kernel: Function) -> Function:
    def norm(self, x, residual=None, post_residual_addition=None, quant_linear=None):
        if (
            x.dtype in FLOATS
            and self.variance_size_override is None
            and self.cast_x_before_out_mul is False
            and self.override_orig_dtype is None
        ):
            if residual is None:
                return kernel(
                    x.contiguous(), self.weight, self.variance_epsilon, residual,
                    post_residual_addition, None, False, self.fp32_residual, None,
                )  # fmt: skip
            if post_residual_addition is None and self.fp32_residual is False:
                return kernel(
                    x.contiguous(), self.weight, self.variance_epsilon, residual.contiguous(),
                    post_residual_addition, None, False, False, None,
                )  # fmt: skip
        return kernel(
            x, self.weight, self.variance_epsilon, residual, post_residual_addition,
            self.variance_size_override, self.cast_x_before_out_mul, self.fp32_residual,
            self.override_orig_dtype,
        )  # fmt: skip

    return norm


def silu_and_mul(kernel: Function) -> Function:
    def act(self, x):
        if x.dtype in FLOATS:
            return kernel(x.contiguous(), None)
        return kernel(x, None)

    return act


def rotary_embedding(kernel: Function) -> Function:
    def rotate(self, positions, query, key, offsets=None, fused_set_kv_buffer_arg=None):
        if fused_set_kv_buffer_arg is not None:
            raise ValueError("fused_set_kv_buffer_arg is not served")
        table, size, width = self.cos_sin_cache, self.head_size, self.rotary_dim
        neox = self.is_neox_style
        if size - width == 0 and offsets is None:
            dtype, other = query.dtype, table.dtype
            if dtype is bfloat16 and other is bfloat16:
                return kernel(positions, query, key, table, size, width, neox, offsets)
            if dtype is float16 and other is float16:
                return kernel(positions, query, key, table, size, width, neox, offsets)
            if dtype is float32 and other is float32:
                return kernel(positions, query, key, table, size, width, neox, offsets)
        return kernel(positions, query, key, table, size, width, neox, offsets)

    return rotate


def moe_topk(kernel: Function) -> Function:
    def route(
        hidden_states,
        gating_output,
        topk,
        renormalize,
        correction_bias=None,
        scoring_func="softmax",
    ):
        if scoring_func == "softmax" and correction_bias is None:
            if renormalize is True:
                return kernel(gating_output, topk, renormalize, correction_bias, scoring_func)
            if renormalize is False:
                return kernel(
                    gating_output, topk, renormalize, correction_bias, scoring_func, clusters=12
                )
        return kernel(gating_output, topk, renormalize, correction_bias, scoring_func)

    return route

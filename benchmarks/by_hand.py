"""Dispatch functions as one would write them in a plugin: the peers of the generated ones.

Each asks the conditions of its operator's tiers and calls the same kernels with the same arguments;
none counts a call or asks whether torch.compile traces it. `dispatch.py` times them, and
`handwritten_bindings/` serves a model with them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import bfloat16, float16, float32

Function = Callable[..., Any]
FLOATS = (float16, bfloat16, float32)
HEADS = (32, 64, 80, 96, 112, 120, 128, 192, 256, 512)


def rms_norm(kernel: Function, add: Function, golden: Function) -> Function:
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
                return add(
                    x.contiguous(), self.weight, self.variance_epsilon, residual.contiguous(),
                    post_residual_addition, None, False, False, None,
                )  # fmt: skip
        return golden(
            x, self.weight, self.variance_epsilon, residual, post_residual_addition,
            self.variance_size_override, self.cast_x_before_out_mul, self.fp32_residual,
            self.override_orig_dtype,
        )  # fmt: skip

    return norm


def silu_and_mul(kernel: Function, golden: Function) -> Function:
    def act(self, x):
        if x.dtype in FLOATS:
            return kernel(x.contiguous(), None)
        return golden(x, None)

    return act


def rotary_embedding(kernel: Function, golden: Function) -> Function:
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
        return golden(positions, query, key, table, size, width, neox, offsets)

    return rotate


def moe_topk(norm: Function, plain: Function, golden: Function) -> Function:
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
                return norm(gating_output, topk, renormalize, correction_bias, scoring_func)
            if renormalize is False:
                return plain(
                    gating_output, topk, renormalize, correction_bias, scoring_func, clusters=12
                )
        return golden(gating_output, topk, renormalize, correction_bias, scoring_func)

    return route


def paged_prefill(raw: Function, paged: Function) -> Function:
    def prefill(
        q, key, value, key_cache, value_cache, out, block_table, q_lod_cpu, q_lod, kv_lod_cpu,
        kv_lod, q_total, kv_total, scale, window,
    ):  # fmt: skip
        if q.dtype in FLOATS and q.shape[2] in HEADS:
            spare = q.shape[2] - value.shape[2]
            if kv_total == q_total and spare >= 0:
                return raw(
                    q.contiguous(), key.contiguous(), value.contiguous(), key_cache, value_cache,
                    out, block_table, q_lod_cpu, q_lod, kv_lod_cpu, kv_lod, q_total, kv_total,
                    scale, window,
                )  # fmt: skip
            if kv_total > q_total and spare == 0:
                return paged(
                    q.contiguous(), key, value, key_cache, value_cache, out, block_table,
                    q_lod_cpu, q_lod, kv_lod_cpu, kv_lod, q_total, kv_total, scale, window,
                )  # fmt: skip
        raise NotImplementedError("no kernel for such a prefill")

    return prefill


def paged_decode(kernel: Function) -> Function:
    def decode(
        q, key_cache, value_cache, out, block_table, seq_lens_cpu, seq_lens, max_seq_len, scale,
        window,
    ):  # fmt: skip
        if q.dtype in FLOATS and q.shape[3] in HEADS and q.shape[3] == value_cache.shape[3]:
            return kernel(
                q.contiguous(), key_cache, value_cache, out, block_table, seq_lens_cpu, seq_lens,
                max_seq_len, scale, window,
            )  # fmt: skip
        raise NotImplementedError("no kernel for such a decode")

    return decode


def store_kv_cache(kernel: Function) -> Function:
    def store(key, value, key_cache, value_cache, slots):
        if key.dtype in FLOATS and key.shape[2] == value.shape[2]:
            return kernel(
                key.contiguous(), value.contiguous(), key_cache, value_cache, slots,
                blhd_layout=False,
            )  # fmt: skip
        raise NotImplementedError("no kernel for such keys and values")

    return store

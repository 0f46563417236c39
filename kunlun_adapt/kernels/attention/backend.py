"""SGLang's attention backend "kunlun": paged attention through our operators.

Upstream calls ``init_forward_metadata`` once per forward pass and ``forward_extend`` or
``forward_decode`` once per layer. Which kernel serves a call is decided by the operators'
dispatch functions, never here.
"""

from __future__ import annotations

from typing import Any

import torch
from sglang.srt.layers.attention.base_attn_backend import AttentionBackend
from sglang.srt.layers.radix_attention import AttentionType
from sglang.srt.runtime_context import get_parallel
from torch import Tensor

from kunlun_adapt.kernels.attention import backend_name
from kunlun_adapt.kernels.attention.metadata import (
    CapturedDecode,
    DecodeMetadata,
    ExtendMetadata,
    decode_metadata,
    extend_metadata,
)
from kunlun_adapt.runtime.operators import operator


class UnsupportedAttentionError(RuntimeError):
    """A kind of attention that no operator of this backend covers."""


class KunlunAttentionBackend(AttentionBackend):
    """Grouped-query, sliding-window and latent attention over paged caches.

    Serves prefill, chunked prefill, mixed batches and decode. Refuses by name what it
    cannot serve: windows over latent caches, logit caps, cross attention, bidirectional
    attention and speculative verification.
    """

    def __init__(self, runner: Any) -> None:
        super().__init__()
        self.forward_metadata: DecodeMetadata | ExtendMetadata | None = None
        # Models read the pools off the backend, under upstream's names.
        self.token_to_kv_pool = runner.token_to_kv_pool
        self.req_to_token_pool = runner.req_to_token_pool
        self._pool = runner.token_to_kv_pool
        self._req_to_token = runner.req_to_token_pool.req_to_token
        self._page_size = int(self._pool.page_size)
        self._context_len = int(runner.model_config.context_len)
        self._device = runner.device
        self._latent = bool(runner.use_mla_backend)
        self._check_pool()
        self._checked: set[int] = set()
        self._captured: CapturedDecode | None = None
        self._compiled: CapturedDecode | None = None
        if self._latent:
            self._decode_op = operator("mla_decode_attention")
            self._prefill_op = operator("mla_prefill_attention")
        else:
            self._decode_op = operator("paged_decode_attention")
            self._prefill_op = operator("paged_prefill_attention")

    def support_triton(self) -> bool:
        """False: Triton kernels do not run on the device."""
        return False

    def init_forward_metadata(self, forward_batch: Any) -> None:
        """Prepare block tables and lengths for ``forward_batch`` (eager mode)."""
        mode = forward_batch.forward_mode
        if mode.is_idle():
            self.forward_metadata = None
        elif mode.is_decode():
            compiled = self._compiled
            if compiled is not None and forward_batch.batch_size <= compiled.max_batch:
                self.forward_metadata = compiled.refresh(forward_batch, self._req_to_token)
            else:
                self.forward_metadata = decode_metadata(
                    forward_batch, self._req_to_token, self._page_size
                )
        elif mode.is_extend() and not mode.is_target_verify():
            self.forward_metadata = extend_metadata(
                forward_batch, self._req_to_token, self._page_size
            )
        else:
            raise UnsupportedAttentionError(
                f"the kunlun attention backend serves prefill and decode, not {mode.name}; "
                "start without speculative decoding"
            )

    def init_cuda_graph_state(self, max_bs: int, max_num_tokens: int) -> None:
        """Allocate the metadata buffers that captured decode graphs read."""
        self._captured = CapturedDecode(max_bs, self._context_len, self._page_size, self._device)

    def init_forward_metadata_out_graph(self, forward_batch: Any, in_capture: bool = False) -> None:
        """Refresh the captured decode metadata before a capture or a replay."""
        if self._captured is None or not forward_batch.forward_mode.is_decode():
            raise UnsupportedAttentionError(
                "the kunlun attention backend captures decode batches only"
            )
        self.forward_metadata = self._captured.refresh(forward_batch, self._req_to_token)

    def get_cuda_graph_seq_len_fill_value(self) -> int:
        """Length that padding requests of a captured batch get."""
        return 1

    def init_cpu_graph_state(self, max_bs: int, max_num_tokens: int) -> None:
        """Allocate the metadata buffers that compiled decode steps read: their shapes must stay."""
        self._compiled = CapturedDecode(max_bs, self._context_len, self._page_size, self._device)

    def init_forward_metadata_capture_cpu_graph(self, bs: int, *_: Any) -> None:
        """Give a decode step of ``bs`` padding requests what it reads while it is compiled."""
        assert self._compiled is not None
        self.forward_metadata = self._compiled.views(bs)

    def get_cpu_graph_seq_len_fill_value(self) -> int:
        """Length that padding requests of a compiled batch get."""
        return 1

    def forward_decode(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        layer: Any,
        forward_batch: Any,
        save_kv_cache: bool = True,
        **kwargs: Any,
    ) -> Tensor:
        """Attention of one new token per request; returns ``[tokens, heads * v_dim]``."""
        self._admit(layer, kwargs)
        self._save(k, v, layer, forward_batch, save_kv_cache)
        meta = self.forward_metadata
        assert isinstance(meta, DecodeMetadata)
        query = q.reshape(-1, 1, layer.tp_q_head_num, layer.qk_head_dim)
        out = self._output(query, meta.batch, layer)
        window = () if self._latent else (_window(layer),)
        self._decode_op(
            query[: meta.batch],
            *self._caches(layer),
            out[: meta.batch],
            meta.block_table,
            meta.seq_lens_cpu,
            meta.seq_lens,
            meta.max_seq_len,
            layer.scaling,
            *window,
        )
        return out.view(out.shape[0], -1)

    def forward_extend(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        layer: Any,
        forward_batch: Any,
        save_kv_cache: bool = True,
        **kwargs: Any,
    ) -> Tensor:
        """Causal attention of new tokens; returns ``[tokens, heads * v_dim]``."""
        self._admit(layer, kwargs)
        self._save(k, v, layer, forward_batch, save_kv_cache)
        meta = self.forward_metadata
        assert isinstance(meta, ExtendMetadata)
        query = q.reshape(-1, layer.tp_q_head_num, layer.qk_head_dim)
        out = self._output(query, meta.q_total, layer)
        lods = (meta.q_lod_cpu, meta.q_lod, meta.kv_lod_cpu, meta.kv_lod)
        if self._latent:
            self._prefill_op(
                query,
                *self._caches(layer),
                out,
                meta.block_table,
                *lods,
                meta.max_seq_len,
                layer.scaling,
            )
        else:
            self._prefill_op(
                query,
                k.view(-1, layer.tp_k_head_num, layer.qk_head_dim),
                v.view(-1, layer.tp_v_head_num, layer.v_head_dim),
                *self._caches(layer),
                out,
                meta.block_table,
                *lods,
                meta.q_total,
                meta.kv_total,
                layer.scaling,
                _window(layer),
            )
        return out.view(out.shape[0], -1)

    def _check_pool(self) -> None:
        pool, name = self._pool, backend_name()
        problem = None
        if get_parallel().dcp_enabled:
            problem = "decode context parallelism spreads the cache, which no kernel here reads"
        elif pool.dtype not in (torch.float32, torch.float16, torch.bfloat16):
            problem = f"a {pool.dtype} cache; start with --kv-cache-dtype auto"
        elif not self._latent and getattr(pool, "kv_cache_layout", None) != "hnd":
            problem = (
                f"{type(pool).__name__} does not hold [blocks, kv_heads, page, dim]; hybrid "
                f"models and a mix of backends need another --attention-backend than {name}"
            )
        if problem is not None:
            raise UnsupportedAttentionError(f"the {name} attention backend: {problem}")

    def _caches(self, layer: Any) -> tuple[Tensor, ...]:
        if not self._latent:
            key, value = self._pool.get_kv_buffer(layer.layer_id)
            return key, value
        rows = self._pool.get_key_buffer(layer.layer_id)
        return (rows.view(-1, self._page_size, rows.shape[-1]),)

    def _save(self, k: Tensor, v: Tensor, layer: Any, batch: Any, save: bool) -> None:
        if save and k is not None:
            self._pool.set_kv_buffer(layer, batch.out_cache_loc, k, v)

    def _output(self, query: Tensor, used: int, layer: Any) -> Tensor:
        # Rows past `used` are padding of the batch; kernels leave them alone.
        make = torch.empty if query.shape[0] == used else torch.zeros
        shape = (*query.shape[:-1], layer.v_head_dim)
        return make(shape, dtype=query.dtype, device=query.device)

    def _admit(self, layer: Any, extra: dict[str, Any]) -> None:
        if layer.layer_id in self._checked and not extra:
            return
        refused = {
            "a sliding window over a latent cache": self._latent and _window(layer) >= 0,
            "a logit cap": bool(layer.logit_cap),
            "cross attention": layer.is_cross_attention,
            "bidirectional attention": layer.attn_type != AttentionType.DECODER,
            **{f"the argument {name}": value is not None for name, value in extra.items()},
        }
        for what, present in refused.items():
            if present:
                raise UnsupportedAttentionError(
                    f"layer {layer.layer_id} asks for {what}, which the kunlun attention "
                    "backend does not serve; choose another --attention-backend"
                )
        self._checked.add(layer.layer_id)


def _window(layer: Any) -> int:
    """How many tokens before its own a token of ``layer`` sees; -1 for all of them."""
    window = layer.sliding_window_size
    return -1 if window is None else int(window)


def create_backend(runner: Any) -> KunlunAttentionBackend:
    """Build the backend for upstream's registry of attention backends."""
    return KunlunAttentionBackend(runner)

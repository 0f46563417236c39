"""The deployments that must serve transformers' tokens, and the tiers that must serve them."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.server.architectures import (
    DEEPSEEK_V2,
    DEEPSEEK_V3,
    LLAMA,
    OLMO3,
    QWEN2,
    QWEN2_MOE,
    QWEN3,
    QWEN3_MOE,
    TinyModel,
)
from tests.server.releases import before

# Which tiers have to serve, by the recipes, when a model runs in float32. No other tier may
# serve, so no fallback either but where a deployment names one.
LAYERS = {
    "rms_norm": {"xpu_rmsnorm", "xpu_add_rmsnorm"},
    "rotary_embedding": {"xpu_rotary_fp32"},
}
DENSE = {"silu_and_mul": {"xpu_swiglu"}}
# Decode and short prompts have few rows; the longest prompts reach the tiers that sort, unless
# their prefill is cut into chunks.
EXPERTS = {"fused_experts": {"xpu_small", "xpu_presorted_small", "xpu_presorted_block"}}
ATTENTION = {
    # A first prompt is prefilled from its own keys, one with a cached prefix from the pages.
    "paged_prefill_attention": {"xpu_prefill_raw", "xpu_prefill_paged"},
    "paged_decode_attention": {"xpu_speculative"},
    "store_kv_cache": {"xpu_store_flash"},
}
LATENT_ATTENTION = {
    # The vendor's indexed latent kernels take 16-bit caches only.
    "mla_prefill_attention": {"xpu_mla_prefill_by_token"},
    "mla_decode_attention": {"xpu_mla_paged"},
    "store_mla_cache": {"xpu_mla_scatter"},
}
GROUPED_ROUTING = {"moe_grouped_topk": {"xpu_sigmoid_group_topk_norm"}}
GATED_EXPERT = {"gate_sigmoid_mul_add": {"golden"}}
TIERS: dict[TinyModel, dict[str, set[str]]] = {
    LLAMA: {**LAYERS, **DENSE, **ATTENTION},
    QWEN2: {**LAYERS, **DENSE, **ATTENTION},
    QWEN3: {**LAYERS, **DENSE, **ATTENTION},
    # Its norms come after attention and MLP, so that none adds a residual.
    OLMO3: {**LAYERS, **DENSE, **ATTENTION, "rms_norm": {"xpu_rmsnorm"}},
    QWEN3_MOE: {**LAYERS, **ATTENTION, **EXPERTS, "moe_topk": {"xpu_softmax_topk_norm"}},
    QWEN2_MOE: {
        **LAYERS,
        **DENSE,
        **ATTENTION,
        **EXPERTS,
        **GATED_EXPERT,
        "moe_topk": {"xpu_softmax_topk"},
    },
    # Its groups without a bias are routed by upstream's own torch code.
    DEEPSEEK_V2: {**LAYERS, **DENSE, **LATENT_ATTENTION, **EXPERTS},
    DEEPSEEK_V3: {**LAYERS, **DENSE, **LATENT_ATTENTION, **EXPERTS, **GROUPED_ROUTING},
}


@dataclass(frozen=True, slots=True)
class Deployment:
    """One way to start a server: a model, a page size, and how the work is cut and spread."""

    model: TinyModel
    page_size: int
    # New tokens per prefill; None leaves it to upstream, which then cuts none of the prompts.
    chunk: int | None = None
    tensor_parallel: int = 1
    pipeline_parallel: int = 1
    data_parallel: int = 1
    # What the simulated device reports to SGLang: docs/simulator.md.
    device: str = field(default="cpu", kw_only=True)
    full: bool = field(default=False, kw_only=True)

    @property
    def name(self) -> str:
        """How tests name it: "llama-page16-tp2"."""
        parts = [self.model.name, f"page{self.page_size}"]
        parts += [f"chunk{self.chunk}"] if self.chunk else []
        for short, ranks in (
            ("tp", self.tensor_parallel),
            ("pp", self.pipeline_parallel),
            ("dp", self.data_parallel),
        ):
            parts += [f"{short}{ranks}"] if ranks > 1 else []
        parts += [self.device] if self.device != "cpu" else []
        return "-".join(parts)

    @property
    def options(self) -> tuple[str, ...]:
        """The options of `kunlun-adapt serve` beside --simulator."""
        return ("--device", self.device)

    @property
    def arguments(self) -> tuple[str, ...]:
        """SGLang's arguments; none of them chooses a backend, a pool or an allocator."""
        given = ["--page-size", str(self.page_size)]
        given += ["--chunked-prefill-size", str(self.chunk)] if self.chunk else []
        for option, ranks in (
            ("--tp-size", self.tensor_parallel),
            ("--pp-size", self.pipeline_parallel),
            ("--dp-size", self.data_parallel),
        ):
            given += [option, str(ranks)] if ranks > 1 else []
        return tuple(given)

    @property
    def ranks(self) -> int:
        """Schedulers, each with a part of the model or a copy of it."""
        return self.tensor_parallel * self.pipeline_parallel * self.data_parallel

    @property
    def environment(self) -> dict[str, str]:
        """Upstream splits cores by NUMA node and refuses more ranks than nodes, unless told.

        Before 0.5.19 it counts tensor-parallel ranks only.
        """
        ranks = self.tensor_parallel if before("0.5.19") else self.ranks
        if ranks == 1:
            return {}
        return {"SGLANG_CPU_OMP_THREADS_BIND": "|".join(str(core) for core in range(ranks))}

    @property
    def stops(self) -> str | None:
        """Why the installed SGLang cannot serve it, with or without us."""
        if self.model is OLMO3 and before("0.5.18"):
            return "sglang/srt/models/olmo2.py:103 reads rope_parameters, which the config lacks"
        return None

    @property
    def tiers(self) -> dict[str, set[str]]:
        """The tiers that serve, by operator."""
        tiers = dict(TIERS[self.model])
        # Two experts per token, and 399 of these pairs at most in the tier for few rows.
        if self.chunk and 2 * self.chunk < 400 and "fused_experts" in tiers:
            tiers["fused_experts"] = {"xpu_small"}
        return tiers

    @property
    def processes(self) -> int:
        """SGLang's own: one answers HTTP and tokenizes, one detokenizes, one schedules per rank.

        With data parallelism there is a controller above the schedulers.
        """
        return 2 + self.ranks + (1 if self.data_parallel > 1 else 0)


# Each page size with each kind of cache; chunks of a page or little more, so that prompts are cut.
# With experts, chunks of 512 cut none, but keep requests that come together from filling a prefill
# of 1024 tokens, from which on another tier serves: whether they do is a matter of time.
DEPLOYMENTS = (
    Deployment(LLAMA, 1, 16),
    Deployment(LLAMA, 128, 128),
    Deployment(QWEN3_MOE, 16, 512),
    Deployment(DEEPSEEK_V3, 16, 512),
    Deployment(LLAMA, 16, full=True),
    Deployment(DEEPSEEK_V3, 1, 16, full=True),
    Deployment(DEEPSEEK_V3, 128, 128, full=True),
    Deployment(QWEN3_MOE, 128, 512, full=True),
    Deployment(QWEN2, 16, full=True),
    Deployment(QWEN3, 128, 128, full=True),
    Deployment(QWEN2_MOE, 16, 512, full=True),
    Deployment(OLMO3, 16, full=True),
    Deployment(OLMO3, 1, 16, full=True),
    Deployment(OLMO3, 128, 128, full=True),
    Deployment(DEEPSEEK_V2, 16, 512, full=True),
    Deployment(LLAMA, 16, tensor_parallel=2, full=True),
    Deployment(QWEN3_MOE, 16, 512, tensor_parallel=2, full=True),
    Deployment(LLAMA, 16, pipeline_parallel=2, full=True),
    Deployment(QWEN3_MOE, 16, 512, pipeline_parallel=2, full=True),
    Deployment(LLAMA, 16, data_parallel=2, full=True),
    Deployment(LLAMA, 128, 128, device="cuda", full=True),
    Deployment(LLAMA, 16, tensor_parallel=2, device="cuda", full=True),
    Deployment(QWEN3_MOE, 16, 512, device="cuda", full=True),
    Deployment(DEEPSEEK_V3, 16, 512, device="cuda", full=True),
)

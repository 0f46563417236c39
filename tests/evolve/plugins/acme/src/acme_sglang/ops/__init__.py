"""Operators and backends, through upstream's registries and helpers of the plugin's own."""

from sglang.srt.layers.activation import GeluAndMul, SiluAndMul
from sglang.srt.layers.attention.attention_registry import (
    ATTENTION_BACKENDS,
    register_attention_backend,
)
from sglang.srt.layers.layernorm import RMSNorm
from sglang.srt.layers.moe.moe_runner.base import register_fused_func
from sglang.srt.models.registry import ModelRegistry

_FORWARDS = {}


def forward_of(*classes):
    def decorator(function):
        for cls in classes:
            _FORWARDS[cls] = function
        return function

    return decorator


@forward_of(SiluAndMul, GeluAndMul)
def gated(self, x):
    """Both gated activations are one kernel."""
    return x


@forward_of(RMSNorm)
def rms_norm(self, x, residual=None):
    return x


@register_attention_backend("acme")
def create_backend(runner):
    return None


def acme_backend(name):
    """The plugin's own way to the same registry."""
    return register_attention_backend(f"acme_{name}")


@acme_backend("sparse")
def create_sparse(runner):
    return None


@register_fused_func("none", "acme")
def fused_experts(dispatch_output, quant_info, runner_config):
    return None


def install():
    for cls, function in _FORWARDS.items():
        cls.register_oot_forward(cls, function, "acme")
    ModelRegistry.register("acme_sglang.models")
    ATTENTION_BACKENDS["acme_dict"] = create_backend

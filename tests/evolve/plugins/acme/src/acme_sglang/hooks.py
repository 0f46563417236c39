"""Implementations, bound by decorators where they stand and by install.py elsewhere."""

from sglang.srt.layers.moe.topk import select_experts as upstream_select
from sglang.srt.managers.scheduler import Scheduler
from sglang.srt.plugins import plugin_hook
from sglang.srt.plugins.hook_registry import HookType

from .patching import around, collected, replaces
from .paths import LAYERS, UTILS


@plugin_hook("sglang.srt.managers.scheduler.Scheduler.run_batch", type=HookType.BEFORE)
def before_batch(self, batch, *args, **kwargs):
    """Count batches before they run."""
    return None


@plugin_hook("sglang.srt.model_executor.model_runner.ModelRunner.load_model")
def after_load(result, *args, **kwargs):
    return result


@plugin_hook("sglang.srt.managers.scheduler.Scheduler", type=HookType.REPLACE)
class AcmeScheduler(Scheduler):
    pass


@replaces(f"{UTILS}.support_triton")
def support_triton(backend: str) -> bool:
    return False


@around(upstream_select)
def select_experts(original, *args, **kwargs):
    return original(*args, **kwargs)


@collected("sglang.srt.utils.common", "get_available_gpu_memory")
def available_memory(device, gpu_id, distributed=False, empty_cache=True, cpu_group=None):
    return 1.0


@collected(LAYERS + ".rotary_embedding.factory", "get_rope_wrapper")
def rope_wrapper(head_size, rotary_dim, max_position, base):
    """Takes fewer arguments than upstream passes."""


def is_flashinfer_available():
    return False


def gather(original, *args):
    return original(*args)


def set_affinity(pp_size, tp_size, nnodes, gpu_id):
    return None


def grouped_topk(*args, **kwargs):
    return None


def new_helper():
    return None


def empty_cache(self):
    return None


def device_name(device=None):
    return "acme"


def vanished(*args):
    return None


class AcmeTokenizerManager:
    pass

# ruff: noqa: B010, I001 -- written the way that plugins are
"""What the plugin's entry point does."""

import importlib
import os
import sys

import torch
from sglang.srt.plugins.hook_registry import HookRegistry, HookType

from acme_sglang import hooks, ops, stubs
from acme_sglang.paths import TABLE
from acme_sglang.patching import Patch, apply_collected

_done = False

LOOPED = {
    "sglang.srt.layers.moe.topk.grouped_topk_gpu": hooks.grouped_topk,
    "sglang.srt.layers.moe.topk.biased_grouped_topk_gpu": hooks.grouped_topk,
}
PATCHES = [
    Patch("sglang.srt.utils.common", "set_gpu_proc_affinity", hooks.set_affinity),
]


def register():
    global _done
    if _done:
        return
    _done = True
    _environment()
    _stand_ins()
    _hooks()
    _assignments()
    apply_collected()
    for patch in PATCHES:
        patch.apply()
    ops.install()
    _undecidable(os.environ.get("ACME_TARGET", ""))


def _environment():
    os.environ.setdefault("ACME_STREAMS", "2")
    os.environ["SGLANG_SKIP_SGL_KERNEL_VERSION_CHECK"] = "1"


def _stand_ins():
    from acme_sglang.stubs import kernel_stub

    sys.modules["sgl_kernel"] = kernel_stub
    sys.modules.setdefault("deep_gemm", stubs.deep_gemm_stub)
    sys.modules["flashinfer"] = stubs.make("flashinfer")


def _hooks():
    HookRegistry.register(TABLE["flashinfer"], hooks.is_flashinfer_available, HookType.REPLACE)
    for target, function in LOOPED.items():
        HookRegistry.register(target, function, HookType.REPLACE)
    HookRegistry.register("sglang.srt.layers.linear.vanished_in_no_release", hooks.vanished)
    if torch.cuda.is_available():
        HookRegistry.register(
            "sglang.srt.distributed.parallel_state.GroupCoordinator.all_gather",
            hooks.gather,
            HookType.AROUND,
        )


def _assignments():
    import sglang.srt.server_args as server_args
    from sglang.srt.managers import tokenizer_manager
    from sglang.srt.mem_cache import allocation
    from sglang.srt.platforms import interface as platform_interface

    server_args.ATTENTION_BACKEND_CHOICES.append("acme")
    server_args.GRAMMAR_BACKEND_CHOICES += ["acme_grammar"]
    tokenizer_manager.TokenizerManager = hooks.AcmeTokenizerManager
    allocation.get_last_loc = lambda *args: None
    setattr(platform_interface.SRTPlatform, "empty_cache", hooks.empty_cache)
    importlib.import_module("sglang.srt.utils.common").acme_helper = hooks.new_helper
    torch.cuda.get_device_name = hooks.device_name
    server_args.DEFAULT_PORT_FOR_ACME_TEST = 30000
    common = sys.modules["sglang.srt.utils.common"]
    common.BAR_FORMAT = "acme"


def _undecidable(name):
    HookRegistry.register(name, hooks.gather, HookType.AROUND)
    module = importlib.import_module(name)
    module.anything = hooks.gather
    for name in os.listdir("."):
        HookRegistry.register(f"sglang.srt.{name}", hooks.gather, HookType.AROUND)


def never_called():
    HookRegistry.register("sglang.srt.utils.common.is_hip", hooks.vanished, HookType.REPLACE)

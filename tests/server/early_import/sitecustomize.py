"""Puts a kernel module into every process before the plugin can, with its symbol already taken.

Python imports this file at its start when the folder is on PYTHONPATH. The module is a stand-in
for the real one: importing that would resolve the platform, and so load the plugin, first.
"""

import sys
from types import ModuleType

KERNEL_MODULE = "sglang.kernels.ops.activation.activation"


def silu_and_mul(input, out=None, **options):
    """The upstream symbol, as somebody bound it before the plugin was there."""
    raise AssertionError("the unpatched symbol was called")


early = ModuleType(KERNEL_MODULE)
early.silu_and_mul = silu_and_mul
sys.modules[KERNEL_MODULE] = early

user = ModuleType("sglang.early_user")
user.silu_and_mul = silu_and_mul
sys.modules["sglang.early_user"] = user

"""kunlun_adapt simulator stand-in for triton: importable, decorates kernels, never runs one.

SGLang imports triton before it resolves a platform, so a host without it needs an importable
package. Only what SGLang and torch touch at import time is here.
"""

from __future__ import annotations

from triton import backends, compiler, errors, knobs, language, runtime, testing, tools
from triton._standin import STANDIN, StandinError, missing
from triton.runtime import (
    Autotuner,
    Config,
    Heuristics,
    JITFunction,
    KernelInterface,
    OutOfResources,
    autotune,
    heuristics,
)
from triton.runtime.jit import jit

__version__ = "3.7.1+simulator"
__simulator__ = True
TRITON_MAX_TENSOR_NUMEL = 1048576


def cdiv(x: int, y: int) -> int:
    """Return x / y rounded up."""
    return (x + y - 1) // y


def next_power_of_2(n: int) -> int:
    """Return the smallest power of two that is not below n."""
    return 1 << max(n - 1, 0).bit_length() if n > 0 else 0


def __getattr__(name: str) -> object:
    raise missing("triton", name)


__all__ = [
    "STANDIN",
    "TRITON_MAX_TENSOR_NUMEL",
    "Autotuner",
    "Config",
    "Heuristics",
    "JITFunction",
    "KernelInterface",
    "OutOfResources",
    "StandinError",
    "autotune",
    "backends",
    "cdiv",
    "compiler",
    "errors",
    "heuristics",
    "jit",
    "knobs",
    "language",
    "next_power_of_2",
    "runtime",
    "testing",
    "tools",
]

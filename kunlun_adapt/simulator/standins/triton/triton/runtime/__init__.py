"""kunlun_adapt simulator stand-in for triton.runtime."""

from __future__ import annotations

from triton.runtime import autotuner, cache, driver, errors, jit
from triton.runtime.autotuner import Autotuner, Config, Heuristics, autotune, heuristics
from triton.runtime.errors import OutOfResources
from triton.runtime.jit import JITFunction, KernelInterface

__all__ = [
    "Autotuner",
    "Config",
    "Heuristics",
    "JITFunction",
    "KernelInterface",
    "OutOfResources",
    "autotune",
    "autotuner",
    "cache",
    "driver",
    "errors",
    "heuristics",
    "jit",
]

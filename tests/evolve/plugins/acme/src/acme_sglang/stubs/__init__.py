# ruff: noqa: F401 -- written the way that plugins are
import types

from . import deep_gemm_stub


def make(name):
    module = types.ModuleType(name)
    module.norm = lambda *args: None
    return module

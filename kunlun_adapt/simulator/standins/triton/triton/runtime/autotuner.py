"""kunlun_adapt simulator stand-in for triton.runtime.autotuner."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from triton.runtime.errors import OutOfResources, PTXASError
from triton.runtime.jit import KernelInterface


class Config:
    """One candidate of an autotuned kernel, kept as data."""

    def __init__(
        self,
        kwargs: dict[str, Any],
        num_warps: int = 4,
        num_stages: int = 3,
        num_ctas: int = 1,
        maxnreg: int | None = None,
        pre_hook: Callable[..., Any] | None = None,
        ir_override: str | None = None,
        **more: Any,
    ) -> None:
        self.kwargs = kwargs
        self.num_warps = num_warps
        self.num_stages = num_stages
        self.num_ctas = num_ctas
        self.maxnreg = maxnreg
        self.pre_hook = pre_hook
        self.ir_override = ir_override
        self.more = more

    def all_kwargs(self) -> dict[str, Any]:
        """Return the candidate as keyword arguments."""
        return {**self.kwargs, "num_warps": self.num_warps, "num_stages": self.num_stages}


class Autotuner(KernelInterface):
    """A kernel under triton.autotune."""

    def __init__(self, fn: Any, configs: Any = (), key: Any = (), **options: Any) -> None:
        self.fn = fn
        self.configs = configs
        self.keys = key
        self.options = options
        self.__name__ = getattr(fn, "__name__", "kernel")
        self.__doc__ = getattr(fn, "__doc__", None)


class Heuristics(KernelInterface):
    """A kernel under triton.heuristics."""

    def __init__(self, fn: Any, values: Any = None) -> None:
        self.fn = fn
        self.values = values
        self.__name__ = getattr(fn, "__name__", "kernel")
        self.__doc__ = getattr(fn, "__doc__", None)


def autotune(configs: Any = (), key: Any = (), **options: Any) -> Callable[[Any], Autotuner]:
    """Decorate a kernel without measuring anything."""
    return lambda fn: Autotuner(fn, configs, key, **options)


def heuristics(values: Any) -> Callable[[Any], Heuristics]:
    """Decorate a kernel without evaluating anything."""
    return lambda fn: Heuristics(fn, values)


__all__ = [
    "Autotuner",
    "Config",
    "Heuristics",
    "OutOfResources",
    "PTXASError",
    "autotune",
    "heuristics",
]

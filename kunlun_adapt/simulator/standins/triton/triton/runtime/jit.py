"""kunlun_adapt simulator stand-in for triton.runtime.jit: decorated kernels, never run."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from triton._standin import missing, refuse


class KernelInterface:
    """What can be written as kernel[grid](...)."""

    fn: Any

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        return functools.partial(self.run, grid=grid)

    def run(self, *args: Any, **kwargs: Any) -> None:
        refuse(f"Triton kernel {kernel_name(self)!r}")


class JITFunction(KernelInterface):
    """A function decorated with triton.jit; launching or calling it raises with its name."""

    def __init__(self, fn: Callable[..., Any], **options: Any) -> None:
        functools.update_wrapper(self, fn)
        self.fn = fn
        self.options = options
        self.arg_names = list(inspect.signature(fn).parameters)
        self.__simulator__ = True

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        refuse(f"Triton function {kernel_name(self)!r}")

    def __repr__(self) -> str:
        return f"<stand-in Triton kernel {kernel_name(self)}>"


def kernel_name(kernel: Any) -> str:
    """Return the dotted name of a decorated kernel, through autotune and heuristics wrappers."""
    while hasattr(kernel, "fn"):
        kernel = kernel.fn
    return f"{getattr(kernel, '__module__', '?')}.{getattr(kernel, '__qualname__', kernel)}"


def jit(fn: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Decorate a kernel, with or without arguments."""
    if fn is None:
        return lambda function: JITFunction(function, **options)
    return JITFunction(fn, **options)


def constexpr_function(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function itself: on the host it is plain Python."""
    return fn


def __getattr__(name: str) -> object:
    raise missing("triton.runtime.jit", name)

"""The CUDA masquerade over this CPU: torch answers to CUDA's names, and host memory holds it all.

A card answers to CUDA's names through the vendor's runtime. Here ``put_on`` lets torch do the same:
calls that name a CUDA device run on the CPU, and the parts of ``torch.cuda`` that SGLang asks for
are those of :mod:`kunlun_adapt.simulator.cuda`. What is not among them still ends in torch's own
"Torch not compiled with CUDA enabled".

Tensors keep saying where they are: ``device`` is ``cpu`` and ``is_cuda`` is False, since nobody
could tell a host tensor from a device tensor otherwise. ``torch.version.cuda`` stays None, so that
SGLang's ``is_cuda()`` is False and none of its CUDA binaries is loaded.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from kunlun_adapt.diagnostics import AdaptError
from kunlun_adapt.simulator import cuda

HOST = torch.device("cpu")
_CUDA = re.compile(r"cuda(:\d+)?\Z")
_PINNING = (torch.Tensor.pin_memory, torch.Tensor.is_pinned)
_worn = False


class Masquerade(TorchFunctionMode):
    """Runs on the CPU what is asked of a CUDA device. Holds for the thread that enters it."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Call `func` with the CPU in the place of each CUDA device."""
        # A device may be named; only what is made there is made here.
        if func is torch.device:
            return func(*args, **(kwargs or {}))
        if func is torch.Tensor.cuda:
            return args[0]
        # There is no device to copy to, so that memory needs no pinning.
        if func in _PINNING:
            return args[0] if func is torch.Tensor.pin_memory else False
        if kwargs:
            kwargs = {name: _on_host(value) for name, value in kwargs.items()}
            if kwargs.get("pin_memory"):
                kwargs["pin_memory"] = False
            if isinstance(kwargs.get("device"), int):
                kwargs["device"] = HOST
        return func(*[_on_host(arg) for arg in args], **(kwargs or {}))


def _on_host(value: Any) -> Any:
    """Return the CPU for a CUDA device, in any of the forms that torch takes."""
    if isinstance(value, torch.device):
        return HOST if value.type == "cuda" else value
    if isinstance(value, str):
        return "cpu" if _CUDA.match(value) else value
    return value


def put_on() -> None:
    """Let torch answer to CUDA's names in this process and in each thread started from now on.

    Safe to call again. Raises AdaptError where there is a CUDA device, which it would hide.
    """
    global _worn
    if _worn:
        return
    if torch.cuda.is_available():
        raise AdaptError(
            "the simulator cannot report CUDA: there is a CUDA device, which it would hide",
            "hide the device (CUDA_VISIBLE_DEVICES=), or let the simulator report cpu",
        )
    _worn = True
    cuda.install()
    _wrap_generator()
    _wear_in_threads()
    Masquerade().__enter__()  # for the rest of this thread's life


def _wear_in_threads() -> None:
    """Have each new thread enter the mode: torch keeps modes for one thread only."""
    start = threading.Thread.start

    def start_masked(thread: threading.Thread) -> None:
        run = thread.run

        def run_masked() -> None:
            with Masquerade():
                run()

        thread.run = run_masked  # type: ignore[method-assign]
        start(thread)

    threading.Thread.start = start_masked  # type: ignore[method-assign, assignment]


def _wrap_generator() -> None:
    """Let `torch.Generator` and the default device, which no mode sees, take CUDA's names."""

    class Generator(torch.Generator):
        """A random generator; one for the masked device is the CPU's."""

        def __new__(cls, device: Any = HOST) -> Generator:
            return super().__new__(cls, device=_on_host(device))

    default = torch.set_default_device
    torch.Generator = Generator
    torch.set_default_device = lambda device: default(_on_host(device))

"""Kernels that must not be captured: a call of one while a graph is captured is refused by name."""

from __future__ import annotations

from collections.abc import Callable

from kunlun_adapt.runtime.dispatch import CallRefused


def capturing() -> Callable[[], bool]:
    """Return what tells whether a graph is being captured; it is asked before an eager kernel runs.

    The device answers as CUDA does. A torch without CUDA has a stand-in class in its place, which
    raises instead of saying no; to ask and see could already open the device.
    """
    import torch

    asks: Callable[[], bool] = torch.cuda.is_current_stream_capturing
    own = asks.__module__ == "torch.cuda.graphs"
    there = getattr(torch._C, "_cuda_isCurrentStreamCapturing", None)
    return _never if own and (there is None or isinstance(there, type)) else asks


def _never() -> bool:
    return False


def refuse_capture(binding: str, tier: str) -> CallRefused:
    """Return the error for a kernel that waits for the device while a graph is captured.

    Capturing it would fail inside the device's runtime, or record what one call happened to see.
    """
    return CallRefused(
        f"kunlun-adapt: {binding}: the tier {tier} is marked `capture: eager`, and a graph is "
        "being captured; serve without graphs (--disable-cuda-graph), or widen a tier that may be "
        "captured so that it takes this call"
    )

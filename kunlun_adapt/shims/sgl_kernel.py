"""Stand-in for ``sgl_kernel``, upstream's CUDA kernel package, which this platform cannot have.

It exists so that ``import sgl_kernel`` succeeds where upstream imports it behind a CUDA guard. It
provides nothing: asking for a kernel names the kernel and what to do about it.
"""

from __future__ import annotations

from typing import NoReturn

# Upstream compares this with the version that it was built against, unless
# SGLANG_SKIP_SGL_KERNEL_VERSION_CHECK is set, which the card profile does.
__version__ = "0.0.0+kunlun-adapt"
__path__: list[str] = []


def __getattr__(name: str) -> NoReturn:
    # A missing dunder is how Python and inspect probe a module; it must stay an ordinary miss.
    if name.startswith("__"):
        raise AttributeError(f"module 'sgl_kernel' has no attribute {name!r}")
    raise AttributeError(
        f"sgl_kernel.{name} is not provided on this platform (kunlun_adapt.shims.sgl_kernel); "
        "bind the upstream function that calls it in an operator recipe (operator_recipes/)",
        name=name,
    )

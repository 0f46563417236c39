"""Stand-in for ``sgl_kernel``, upstream's CUDA kernel package, which this platform cannot have.

It exists so that ``import sgl_kernel`` succeeds where upstream imports it behind a CUDA guard. It
provides nothing: asking for a kernel names the kernel and what to do about it.
"""

from __future__ import annotations

from kunlun_adapt.shims.standin import stand_in

# Upstream compares this with the version that it was built against, unless
# SGLANG_SKIP_SGL_KERNEL_VERSION_CHECK is set, which the card profile does.
__version__ = "0.0.0+kunlun-adapt"
__getattr__ = stand_in("sgl_kernel", __name__)

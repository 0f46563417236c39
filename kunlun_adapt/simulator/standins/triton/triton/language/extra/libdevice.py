"""kunlun_adapt simulator stand-in for triton.language.extra.libdevice."""

from __future__ import annotations

from triton._standin import Placeholder

exp2 = Placeholder("triton.language.extra.libdevice.exp2")
fast_expf = Placeholder("triton.language.extra.libdevice.fast_expf")
fast_logf = Placeholder("triton.language.extra.libdevice.fast_logf")
fast_log2f = Placeholder("triton.language.extra.libdevice.fast_log2f")

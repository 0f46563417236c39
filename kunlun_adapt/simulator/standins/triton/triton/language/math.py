"""kunlun_adapt simulator stand-in for triton.language.math."""

from __future__ import annotations

from triton._standin import Placeholder

exp = Placeholder("triton.language.math.exp")
exp2 = Placeholder("triton.language.math.exp2")
log = Placeholder("triton.language.math.log")
log2 = Placeholder("triton.language.math.log2")

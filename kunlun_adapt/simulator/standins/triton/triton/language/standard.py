"""kunlun_adapt simulator stand-in for triton.language.standard."""

from __future__ import annotations

from triton._standin import Placeholder

_log2 = Placeholder("triton.language.standard._log2")

"""kunlun_adapt simulator stand-in for triton.language.extra."""

from __future__ import annotations

from triton.language.extra import cuda, libdevice

__all__ = ["cuda", "libdevice"]

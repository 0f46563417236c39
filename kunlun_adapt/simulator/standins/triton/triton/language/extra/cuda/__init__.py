"""kunlun_adapt simulator stand-in for triton.language.extra.cuda."""

from __future__ import annotations

from triton._standin import Placeholder
from triton.language.extra import libdevice

globaltimer = Placeholder("triton.language.extra.cuda.globaltimer")
smid = Placeholder("triton.language.extra.cuda.smid")

__all__ = ["globaltimer", "libdevice", "smid"]

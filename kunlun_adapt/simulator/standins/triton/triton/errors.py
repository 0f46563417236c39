"""kunlun_adapt simulator stand-in for triton.errors."""

from __future__ import annotations

from triton.runtime.errors import OutOfResources, TritonError

__all__ = ["OutOfResources", "TritonError"]

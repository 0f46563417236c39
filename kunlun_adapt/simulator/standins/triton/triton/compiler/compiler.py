"""kunlun_adapt simulator stand-in for triton.compiler.compiler: classes for isinstance checks."""

from __future__ import annotations

from typing import Any

from triton._standin import refuse
from triton.runtime.cache import triton_key


class CompiledKernel:
    """Never instantiated here."""


class ASTSource:
    """Refuses to be built: nothing is compiled here."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        refuse("triton.compiler.ASTSource")


__all__ = ["ASTSource", "CompiledKernel", "triton_key"]

"""kunlun_adapt simulator stand-in for triton.compiler."""

from __future__ import annotations

from triton.compiler.compiler import ASTSource, CompiledKernel

__all__ = ["ASTSource", "CompiledKernel"]

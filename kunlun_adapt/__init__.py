"""Binds SGLang symbols to Kunlun XPU implementations, from YAML checked against real releases."""

from __future__ import annotations

__version__ = "0.1.0"

__all__ = ["__version__"]

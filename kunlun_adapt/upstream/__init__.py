"""Obtain an SGLang release and resolve symbols in it, without importing it."""

from __future__ import annotations

from kunlun_adapt.upstream.facts import Facts
from kunlun_adapt.upstream.symbols import (
    Location,
    Missing,
    Parameter,
    Signature,
    Suggestion,
    Symbol,
    Variant,
)

__all__ = [
    "Facts",
    "Location",
    "Missing",
    "Parameter",
    "Signature",
    "Suggestion",
    "Symbol",
    "Variant",
]

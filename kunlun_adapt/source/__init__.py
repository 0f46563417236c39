"""A plan as Python text: deterministic, and with nothing unchecked in it.

The compiler is loaded on first use: checks only need what is said of signatures.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kunlun_adapt.source.text import SourceError

if TYPE_CHECKING:
    from kunlun_adapt.source.compile import Source, compile_plan, template_folder

__all__ = ["Source", "SourceError", "compile_plan", "template_folder"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from kunlun_adapt.source import compile

    return getattr(compile, name)

"""A plan as Python text: deterministic, and with nothing unchecked in it."""

from .compile import Source, compile_plan, template_folder
from .text import SourceError

__all__ = ["Source", "SourceError", "compile_plan", "template_folder"]

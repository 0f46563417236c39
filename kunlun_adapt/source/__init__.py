"""A plan as Python text: deterministic, and with nothing unchecked in it."""

from kunlun_adapt.source.compile import Source, compile_plan, template_folder
from kunlun_adapt.source.text import SourceError

__all__ = ["Source", "SourceError", "compile_plan", "template_folder"]

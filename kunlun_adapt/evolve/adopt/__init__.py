"""Adopt a plugin that was written by hand: read its Python, write the YAML that says the same."""

from kunlun_adapt.evolve.adopt.adopting import (
    OPERATOR_FILE,
    Adoption,
    adopt_plugin,
    wanted_release,
)
from kunlun_adapt.evolve.adopt.left import Left
from kunlun_adapt.evolve.adopt.making import Taken
from kunlun_adapt.evolve.adopt.sources import Sources, read_sources

__all__ = [
    "OPERATOR_FILE",
    "Adoption",
    "Left",
    "Sources",
    "Taken",
    "adopt_plugin",
    "read_sources",
    "wanted_release",
]

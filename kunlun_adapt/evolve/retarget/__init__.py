"""Carry a workspace to a new release: where each symbol went, and the YAML edit that follows it."""

from kunlun_adapt.evolve.retarget.engine import Job, retarget
from kunlun_adapt.evolve.retarget.releases import Releases, releases_for
from kunlun_adapt.evolve.retarget.result import Account, Retargeted
from kunlun_adapt.evolve.retarget.texts import read_texts, write_texts

__all__ = [
    "Account",
    "Job",
    "Releases",
    "Retargeted",
    "read_texts",
    "releases_for",
    "retarget",
    "write_texts",
]

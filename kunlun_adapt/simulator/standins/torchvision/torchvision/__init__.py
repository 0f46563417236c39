"""kunlun_adapt simulator stand-in for torchvision: importable, processes no image."""

from __future__ import annotations

from torchvision import io, ops, transforms
from torchvision._standin import STANDIN, StandinError, missing

__version__ = "0.28.0+simulator"
__simulator__ = True


def __getattr__(name: str) -> object:
    raise missing("torchvision", name)


__all__ = ["STANDIN", "StandinError", "io", "ops", "transforms"]

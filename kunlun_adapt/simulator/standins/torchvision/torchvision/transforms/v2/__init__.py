"""kunlun_adapt simulator stand-in for torchvision.transforms.v2."""

from __future__ import annotations

from torchvision._standin import missing
from torchvision.transforms import functional
from torchvision.transforms.functional import InterpolationMode


def __getattr__(name: str) -> object:
    raise missing("torchvision.transforms.v2", name)


__all__ = ["InterpolationMode", "functional"]

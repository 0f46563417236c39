"""kunlun_adapt simulator stand-in for torchvision.transforms."""

from __future__ import annotations

from torchvision._standin import missing, refused_class
from torchvision.transforms import functional, v2
from torchvision.transforms.functional import InterpolationMode

Compose = refused_class("torchvision.transforms.Compose")
Lambda = refused_class("torchvision.transforms.Lambda")
Normalize = refused_class("torchvision.transforms.Normalize")
Resize = refused_class("torchvision.transforms.Resize")
ToTensor = refused_class("torchvision.transforms.ToTensor")


def __getattr__(name: str) -> object:
    raise missing("torchvision.transforms", name)


__all__ = [
    "Compose",
    "InterpolationMode",
    "Lambda",
    "Normalize",
    "Resize",
    "ToTensor",
    "functional",
    "v2",
]

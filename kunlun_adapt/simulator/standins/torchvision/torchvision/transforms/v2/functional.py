"""kunlun_adapt simulator stand-in for torchvision.transforms.v2.functional."""

from __future__ import annotations

from torchvision.transforms.functional import (
    InterpolationMode,
    center_crop,
    crop,
    normalize,
    pad,
    pil_to_tensor,
    resize,
    rgb_to_grayscale,
    to_pil_image,
)

__all__ = [
    "InterpolationMode",
    "center_crop",
    "crop",
    "normalize",
    "pad",
    "pil_to_tensor",
    "resize",
    "rgb_to_grayscale",
    "to_pil_image",
]

"""kunlun_adapt simulator stand-in for torchvision.transforms.functional."""

from __future__ import annotations

from enum import Enum

from torchvision._standin import Refused, missing


class InterpolationMode(Enum):
    """A real enum: transformers builds dictionaries from its members at import."""

    NEAREST = "nearest"
    NEAREST_EXACT = "nearest-exact"
    BILINEAR = "bilinear"
    BICUBIC = "bicubic"
    BOX = "box"
    HAMMING = "hamming"
    LANCZOS = "lanczos"


_PREFIX = "torchvision.transforms.functional"
center_crop = Refused(f"{_PREFIX}.center_crop")
crop = Refused(f"{_PREFIX}.crop")
normalize = Refused(f"{_PREFIX}.normalize")
pad = Refused(f"{_PREFIX}.pad")
pil_to_tensor = Refused(f"{_PREFIX}.pil_to_tensor")
resize = Refused(f"{_PREFIX}.resize")
rgb_to_grayscale = Refused(f"{_PREFIX}.rgb_to_grayscale")
to_pil_image = Refused(f"{_PREFIX}.to_pil_image")
to_tensor = Refused(f"{_PREFIX}.to_tensor")


def __getattr__(name: str) -> object:
    raise missing(_PREFIX, name)

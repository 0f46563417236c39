"""kunlun_adapt simulator stand-in for torchvision.io."""

from __future__ import annotations

from enum import Enum

from torchvision._standin import Refused, missing


class ImageReadMode(Enum):
    """Colour modes, as torchvision numbers them."""

    UNCHANGED = 0
    GRAY = 1
    GRAY_ALPHA = 2
    RGB = 3
    RGB_ALPHA = 4


decode_jpeg = Refused("torchvision.io.decode_jpeg")
decode_image = Refused("torchvision.io.decode_image")
read_image = Refused("torchvision.io.read_image")
read_video = Refused("torchvision.io.read_video")


def __getattr__(name: str) -> object:
    raise missing("torchvision.io", name)

"""kunlun_adapt simulator stand-in for torchvision.ops."""

from __future__ import annotations

from torchvision._standin import Refused, missing

nms = Refused("torchvision.ops.nms")
batched_nms = Refused("torchvision.ops.batched_nms")
roi_align = Refused("torchvision.ops.roi_align")


def __getattr__(name: str) -> object:
    raise missing("torchvision.ops", name)

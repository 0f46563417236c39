"""kunlun_adapt simulator stand-in for triton.backends.compiler."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class GPUTarget:
    """A device description, kept as data."""

    backend: str
    arch: int | str
    warp_size: int


class BaseBackend:
    """For isinstance checks."""

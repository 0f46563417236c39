"""Attention on the device: vendor kernels, and the backend class that calls them."""

from __future__ import annotations


def backend_name() -> str:
    """Return the name under which upstream knows our attention backend.

    The map names it; the platform, which is made from the map, hands it out.
    """
    from sglang.srt.platforms import current_platform

    return str(current_platform.get_default_attention_backend())

"""Hooks on how upstream builds rotary embeddings."""

from __future__ import annotations

from typing import Any


def rope_wrapper_device(call: Any) -> Any:
    """Build the rotary embedding as for an accelerator, whatever the device string is (around).

    ``call.args``: device. For device "cpu" upstream goes to a builder that knows only one scaling
    and expects CPU kernels; every other device gets the general one, whose classes our rotary
    operator binds.
    """
    return call.original(device=None)

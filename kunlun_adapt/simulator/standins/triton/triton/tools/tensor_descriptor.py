"""kunlun_adapt simulator stand-in for triton.tools.tensor_descriptor."""

from __future__ import annotations

from typing import Any

from triton._standin import refuse


class TensorDescriptor:
    """Refuses to be built: it only makes sense as a kernel argument."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        refuse("triton.tools.tensor_descriptor.TensorDescriptor")

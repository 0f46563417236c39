"""kunlun_adapt simulator stand-in for triton.runtime.errors."""

from __future__ import annotations


class TritonError(Exception):
    """Base class, for except clauses."""


class OutOfResources(TritonError):
    """Never raised here; exists for except clauses."""

    def __init__(self, required: int = 0, limit: int = 0, name: str = "") -> None:
        super().__init__(f"out of resource: {name}, required {required}, limit {limit}")
        self.required, self.limit, self.name = required, limit, name


class PTXASError(TritonError):
    """Never raised here; exists for except clauses."""


class IntelGPUError(TritonError):
    """Never raised here; exists for except clauses."""

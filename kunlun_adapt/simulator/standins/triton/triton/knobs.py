"""kunlun_adapt simulator stand-in for triton.knobs: settings that nothing reads."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any


class HookChain:
    """A list of callbacks that never fire, because no kernel is ever loaded."""

    def __init__(self, reversed: bool = False) -> None:
        self.calls: list[Callable[..., Any]] = []
        self.reversed = reversed

    def add(self, func: Callable[..., Any]) -> None:
        """Remember a callback."""
        if func not in self.calls:
            self.calls.append(func)

    def remove(self, func: Callable[..., Any]) -> None:
        """Forget a callback."""
        if func in self.calls:
            self.calls.remove(func)


runtime = SimpleNamespace(
    kernel_load_start_hook=HookChain(),
    kernel_load_end_hook=HookChain(),
    launch_enter_hook=HookChain(),
    launch_exit_hook=HookChain(),
    interpret=False,
    debug=False,
)
cache = SimpleNamespace(dir="")

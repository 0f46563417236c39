# ruff: noqa: UP035 -- written the way that plugins are
"""The plugin's own helpers around upstream's ways to bind."""

import importlib
from dataclasses import dataclass
from typing import Callable

from sglang.srt.plugins.hook_registry import HookRegistry, HookType

_COLLECTED = []


def replaces(target):
    """A decorator with arguments."""

    def decorator(function):
        HookRegistry.register(target, function, HookType.REPLACE)
        return function

    return decorator


def around(symbol):
    """A decorator that is given the symbol itself."""
    path = f"{symbol.__module__}.{symbol.__qualname__}"

    def decorator(function):
        HookRegistry.register(path, function, hook_type=HookType.AROUND)
        return function

    return decorator


def collected(module, name):
    """Only notes; `apply_collected` does it."""

    def decorator(function):
        _COLLECTED.append((module, name, function))
        return function

    return decorator


def apply_collected():
    for module, name, function in _COLLECTED:
        setattr(importlib.import_module(module), name, function)


@dataclass
class Patch:
    module: str
    name: str
    function: Callable

    def apply(self):
        setattr(importlib.import_module(self.module), self.name, self.function)

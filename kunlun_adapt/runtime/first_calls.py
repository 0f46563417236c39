"""`KUNLUN_ADAPT_DEBUG=1`: the first call of each binding is logged, with shapes and dtypes.

What is bound is wrapped for that, and only then: otherwise the hot path is what was generated.
"""

from __future__ import annotations

import functools
import inspect
import logging
from collections.abc import Callable
from types import ModuleType
from typing import Any

from kunlun_adapt.runtime import ledger, switches
from kunlun_adapt.runtime.dispatch import describe
from kunlun_adapt.runtime.imports import when_imported
from kunlun_adapt.runtime.roles import current

logger = logging.getLogger("kunlun_adapt")

_seen: set[str] = set()
"""The bindings whose first call was logged, by whichever of those that took it."""


def watched(id: str, function: Any) -> Any:
    """Return the function of a binding, or one that also logs its first call."""
    return _watch(id, function, _by_name) if switches.debug() else function


def watched_hook(id: str, implementation: Any) -> Any:
    """Return the implementation of a hook, or one that also logs the first call that it gets.

    What is no function (a class that replaces a class, a value) is not called and stays as it is.
    """
    if not switches.debug() or not inspect.isfunction(implementation):
        return implementation
    return _watch(id, implementation, _of_call)


def watch_members(platform: str) -> None:
    """Have the methods of the platform class, once there is one, log their first calls too."""
    if not switches.debug():
        return
    served: dict[str, list[str]] = {}
    for entry in ledger.LEDGER.entries.values():
        if entry.member and entry.state != "disabled":
            served.setdefault(entry.member, []).append(entry.id)
    module, _, name = platform.partition(":")

    def watch(made: ModuleType) -> None:
        cls = getattr(made, name)
        for member, ids in served.items():
            raw = vars(cls).get(member)
            function = getattr(raw, "__func__", raw)
            if inspect.isfunction(function):
                new = _watch(", ".join(ids), function, _by_name)
                setattr(cls, member, new if function is raw else type(raw)(new))

    when_imported(module, watch)


def say(id: str, arguments: dict[str, Any]) -> None:
    """Log a first call; as a warning where the process has not set up its logging yet."""
    level = logging.INFO if logger.isEnabledFor(logging.INFO) else logging.WARNING
    logger.log(level, "first call of %s in the %s process: %s", id, current(), describe(arguments))


def _watch(id: str, function: Any, read: Callable[..., dict[str, Any]]) -> Any:
    from torch.compiler import is_compiling

    def look(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if not is_compiling() and id not in _seen:
            _seen.add(id)
            say(id, read(function, args, kwargs))

    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def awaited(*args: Any, **kwargs: Any) -> Any:
            look(args, kwargs)
            return await function(*args, **kwargs)

        return awaited

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        look(args, kwargs)
        return function(*args, **kwargs)

    return called


def _by_name(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return a call's arguments by the parameters' names."""
    try:
        # Not that of what it stands for: `__wrapped__` leads to upstream's original.
        signature = inspect.signature(function, follow_wrapped=False)
        return dict(signature.bind(*args, **kwargs).arguments)
    except (TypeError, ValueError):  # the call itself will say what is wrong
        return {**{str(i): a for i, a in enumerate(args)}, **kwargs}


def _of_call(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return what a hook gets: the mapped arguments of its `call`, else its own."""
    mapped = getattr(args[0], "args", None) if args else None
    return dict(mapped) if isinstance(mapped, dict) else _by_name(function, args, kwargs)

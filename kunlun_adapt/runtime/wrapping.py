"""The forms in which HookRegistry calls a hook, around one implementation that takes a `Call`."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from kunlun_adapt.runtime.call import Call

logger = logging.getLogger("kunlun_adapt")

Reader = Callable[..., dict[str, Any]]


class Replacement:
    """What HookRegistry is given for `replace`: it knows the original that it stands for."""

    __slots__ = ("_serve", "original")

    def __init__(self, serve: Callable[..., Any]) -> None:
        self._serve = serve
        self.original: Callable[..., Any] | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._serve(self._original, args, kwargs)

    def _original(self, *args: Any, **kwargs: Any) -> Any:
        if self.original is None:
            raise RuntimeError("the original is not known before HookRegistry has applied the hook")
        return self.original(*args, **kwargs)


def hook_function(
    kind: str,
    id: str,
    implementation: Callable[[Call], Any],
    read: Reader,
    positional: tuple[str, ...],
    mapped: Mapping[str, str],
) -> Callable[..., Any]:
    """Return the callable that HookRegistry is given, in the form in which it calls `kind`.

    An implementation may be `async` where the original is. For `after` on an async function it is
    run once the result is there; an async generator is handed on as it is. Raises TypeError for an
    async implementation of `before`, which HookRegistry cannot await.
    """
    is_async = inspect.iscoroutinefunction(implementation)
    collects = next((name for name, p in mapped.items() if p.startswith("**")), None)

    def make(original: Any, args: Any, kwargs: Any, result: Any = None) -> Call:
        arguments = read(*args, **kwargs)
        collected = tuple(arguments[collects]) if collects else ()
        return Call(id, original, args, kwargs, arguments, positional, mapped, result, collected)

    def run(call: Call) -> Any:
        try:
            result = implementation(call)
        except Exception as error:
            _name_in(error, call)
            raise
        return _named(call, result) if is_async else result

    if kind == "AROUND":
        return lambda original, *args, **kwargs: run(make(original, args, kwargs))
    if kind == "REPLACE":
        return Replacement(lambda original, args, kwargs: run(make(original, args, kwargs)))
    no_original = _no_original(id)
    if kind == "AFTER":

        async def when_awaited(result: Any, args: Any, kwargs: Any) -> Any:
            value = await result
            changed = run(make(no_original, args, kwargs, value))
            if inspect.isawaitable(changed):
                changed = await changed
            return value if changed is None else changed

        def after(result: Any, *args: Any, **kwargs: Any) -> Any:
            if inspect.iscoroutine(result):
                return when_awaited(result, args, kwargs)
            if is_async:
                raise TypeError(f"{id}: async, and upstream's function is not")
            return run(make(no_original, args, kwargs, result))

        return after
    if is_async:
        raise TypeError("a `before` hook cannot be async; use `around`")

    def before(*args: Any, **kwargs: Any) -> Any:
        call = make(no_original, args, kwargs)
        changes = run(call)
        if changes is None:
            return None
        if not isinstance(changes, dict):
            raise TypeError(
                f"{id}: a `before` hook returns None or the changed arguments by name, "
                f"not {type(changes).__name__}"
            )
        return call.changed(changes)

    return before


async def _named(call: Call, result: Awaitable[Any]) -> Any:
    try:
        return await result
    except Exception as error:
        _name_in(error, call)
        raise


def _name_in(error: Exception, call: Call) -> None:
    """Say in the traceback which hook an error comes from, unless it is the original's own."""
    if error is call.raised:
        return
    note = f"raised by the implementation of hook {call.id!r} (kunlun-adapt explain {call.id})"
    if hasattr(error, "add_note"):
        error.add_note(note)
    else:  # Python 3.10
        logger.error("%s: %s", error, note)


def _no_original(id: str) -> Callable[..., Any]:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise TypeError(f"{id}: only `around` and `replace` hooks may call the original")

    return refuse

"""The call that a hook implementation receives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final


class _Unset:
    """The default of a parameter whose upstream default is no plain literal."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "UNSET"


UNSET: Final = _Unset()


class Call:
    """One call of a hooked upstream function.

    `args` holds the mapped arguments by our own names (one that the caller left at a default that
    is no plain literal is absent). `result` is what the original returned, for `after` hooks.
    """

    __slots__ = ("_args", "_kwargs", "_mapped", "_original", "_positional", "args", "id", "result")

    def __init__(
        self,
        id: str,
        original: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        read: dict[str, Any],
        positional: tuple[str, ...],
        mapped: Mapping[str, str],
        result: Any = None,
    ) -> None:
        self.id = id
        self.args = {name: value for name, value in read.items() if value is not UNSET}
        self.result = result
        self._original = original
        self._args = args
        self._kwargs = kwargs
        self._positional = positional
        self._mapped = mapped

    def original(self, **changes: Any) -> Any:
        """Pass the call on as it came, with the mapped arguments in `changes` replaced.

        Raises TypeError for a name that the binding does not map to a parameter.
        """
        args, kwargs = self.changed(changes)
        return self._original(*args, **kwargs)

    def changed(self, changes: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the upstream arguments with `changes` applied."""
        args, kwargs = list(self._args), dict(self._kwargs)
        for name, value in changes.items():
            parameter = self._mapped.get(name)
            if parameter is None:
                raise TypeError(f"{self.id}: {name!r} is not mapped to a parameter in `args`")
            index = (
                self._positional.index(parameter) if parameter in self._positional else len(args)
            )
            if parameter not in kwargs and index < len(args):
                args[index] = value
            else:
                kwargs[parameter] = value
        return tuple(args), kwargs

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

    `positional` names upstream's parameters that may be passed by position, in order, with a "/"
    after those that may not be passed by name; `mapped`
    gives the upstream parameter of each of our names, with its stars where it collects arguments;
    `collected` names the keyword arguments that upstream's `**` parameter collects.
    """

    __slots__ = (
        "_args",
        "_collected",
        "_kwargs",
        "_mapped",
        "_nameless",
        "_original",
        "_positional",
        "args",
        "id",
        "raised",
        "result",
    )

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
        collected: tuple[str, ...] = (),
    ) -> None:
        self.id = id
        self.args = {name: value for name, value in read.items() if value is not UNSET}
        self.result = result
        self.raised: Exception | None = None
        self._original = original
        self._args = args
        self._kwargs = kwargs
        self._nameless = positional.index("/") if "/" in positional else 0
        self._positional = tuple(name for name in positional if name != "/")
        self._mapped = mapped
        self._collected = collected

    def original(self, **changes: Any) -> Any:
        """Pass the call on as it came, with the mapped arguments in `changes` replaced.

        Raises TypeError for a name that the binding does not map to a parameter, and whatever the
        original raises.
        """
        args, kwargs = self.changed(changes) if changes else (self._args, self._kwargs)
        try:
            return self._original(*args, **kwargs)
        except Exception as error:
            self.raised = error
            raise

    def changed(self, changes: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the upstream arguments with `changes` applied.

        An argument stays where the caller put it, by position or by keyword; one that was left at
        its default goes by position where that is possible, since its name may be for position
        only.
        """
        args, kwargs = list(self._args), dict(self._kwargs)
        parameters = {}
        for name, value in changes.items():
            parameter = self._mapped.get(name)
            if parameter is None:
                raise TypeError(f"{self.id}: {name!r} is not mapped to a parameter in `args`")
            parameters[parameter] = value
        for index, parameter in enumerate(self._positional):
            if parameter not in parameters:
                continue
            value = parameters.pop(parameter)
            if index < len(args):
                args[index] = value
            elif index == len(args) and not self._by_keyword(parameter, kwargs):
                args.append(value)
            elif index < self._nameless:
                raise TypeError(
                    f"{self.id}: {parameter} goes by position only, after "
                    f"{self._positional[len(args)]}, which was left at its default"
                )
            else:
                kwargs[parameter] = value
        for parameter, value in parameters.items():
            if parameter.startswith("**"):
                kwargs = self._collect(kwargs, value)
            elif parameter.startswith("*"):
                args = [*self._by_position(args, kwargs), *value]
            else:
                kwargs[parameter] = value
        return tuple(args), kwargs

    def _by_keyword(self, parameter: str, kwargs: Mapping[str, Any]) -> bool:
        """Tell whether the caller passed the parameter by its name."""
        return parameter in kwargs and parameter not in self._collected

    def _by_position(self, args: list[Any], kwargs: dict[str, Any]) -> list[Any]:
        """Move every positional parameter into position, so that more can follow."""
        moved = args[: len(self._positional)]
        for parameter in self._positional[len(moved) :]:
            if not self._by_keyword(parameter, kwargs):
                raise TypeError(
                    f"{self.id}: {parameter} was left at its default, so that no further "
                    "positional arguments can be passed"
                )
            moved.append(kwargs.pop(parameter))
        return moved

    def _collect(self, kwargs: Mapping[str, Any], value: Mapping[str, Any]) -> dict[str, Any]:
        """Exchange the keyword arguments that upstream's `**` parameter collects."""
        named = {k: v for k, v in kwargs.items() if k not in self._collected}
        twice = named.keys() & value.keys()
        if twice:
            raise TypeError(f"{self.id}: {', '.join(sorted(twice))} is a parameter of its own")
        return {**named, **value}

"""The tests of conditions: what must hold of a value, checked here and compiled to Python.

`holds` and the compiled expression agree on every value that the subject can have. On None a test
other than OneOf and Presence does not hold here, where the expression would raise: `guarded` finds
the conditions that could meet it. An optional scalar may be None, and a server argument may be text
as well, so what is asked of them as numbers first asks whether they are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kunlun_adapt.plan.subject import Subject

NEAR = 1e-5
"""Relative tolerance of `~ value`: wide enough for a float32 constant read back as a double."""

_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "<=": lambda a, b: bool(a <= b),
    ">=": lambda a, b: bool(a >= b),
    "<": lambda a, b: bool(a < b),
    ">": lambda a, b: bool(a > b),
    "==": lambda a, b: bool(a == b),
    "!=": lambda a, b: bool(a != b),
}


@dataclass(frozen=True, slots=True)
class OneOf:
    """The value is one of these; `dtype` values are dtype names. True is not 1, nor False 0."""

    values: tuple[Any, ...]

    def holds(self, value: Any) -> bool:
        for wanted in self.values:
            if value is wanted if isinstance(wanted, bool) else _same(value, wanted):
                return True
        return False

    def expression(self, subject: Subject, read: str) -> str:
        if subject.prop == "dtype":
            return (
                f"{read} is {self.values[0]}"
                if len(self.values) == 1
                else _within(read, self.values)
            )
        flags = [v for v in self.values if isinstance(v, bool)]
        others = [v for v in self.values if not isinstance(v, bool)]
        parts = [f"{read} is {v}" for v in flags]
        if len(others) == 1 and others[0] is None:
            parts.append(f"{read} is None")
        elif others:
            shown = [ascii(v) for v in others]
            test = f"{read} == {shown[0]}" if len(others) == 1 else _within(read, shown)
            confused = [v for v in (True, False) if v in others and v not in flags]
            if confused and not subject.never_bool:
                # True == 1, and a flag must not pass for a number.
                test = " and ".join([test, *(f"{read} is not {v}" for v in confused)])
                parts.append(f"({test})")
            else:
                parts.append(test)
        return parts[0] if len(parts) == 1 else f"({' or '.join(parts)})"

    def points(self) -> tuple[Any, ...]:
        return self.values


@dataclass(frozen=True, slots=True)
class Compare:
    """The value compares so with a number."""

    op: str
    value: int | float

    def holds(self, value: Any) -> bool:
        return _is_number(value) and _OPERATORS[self.op](value, self.value)

    def expression(self, subject: Subject, read: str) -> str:
        return _numeric(subject, read, f"{read} {self.op} {self.value!r}")

    def points(self) -> tuple[Any, ...]:
        return (self.value,)


@dataclass(frozen=True, slots=True)
class Between:
    """The value lies in a closed interval."""

    low: int | float
    high: int | float

    def holds(self, value: Any) -> bool:
        return _is_number(value) and bool(self.low <= value <= self.high)

    def expression(self, subject: Subject, read: str) -> str:
        return _numeric(subject, read, f"{self.low!r} <= {read} <= {self.high!r}")

    def points(self) -> tuple[Any, ...]:
        return (self.low, self.high)


@dataclass(frozen=True, slots=True)
class Divisible:
    """The value leaves this rest."""

    by: int
    rest: int

    def holds(self, value: Any) -> bool:
        return _is_number(value) and bool(value % self.by == self.rest)

    def expression(self, subject: Subject, read: str) -> str:
        return _numeric(subject, read, f"{read} % {self.by} == {self.rest}")

    def points(self) -> tuple[Any, ...]:
        return ()


@dataclass(frozen=True, slots=True)
class PowerOfTwo:
    """The value is 1, 2, 4, 8, …"""

    def holds(self, value: Any) -> bool:
        return isinstance(value, int) and value > 0 and value & (value - 1) == 0

    def expression(self, subject: Subject, read: str) -> str:
        text = f"({read} > 0 and {read} & ({read} - 1) == 0)"
        return _numeric(subject, read, text, "int")

    def points(self) -> tuple[Any, ...]:
        return ()


@dataclass(frozen=True, slots=True)
class Near:
    """The value equals a constant up to `NEAR`, relative."""

    value: float

    @property
    def slack(self) -> float:
        return abs(self.value) * NEAR

    def holds(self, value: Any) -> bool:
        return _is_number(value) and bool(abs(value - self.value) <= self.slack)

    def expression(self, subject: Subject, read: str) -> str:
        # Minus a negative constant is text that nobody reads twice.
        sign = f"- {self.value!r}" if self.value > 0 else f"+ {-self.value!r}"
        return _numeric(subject, read, f"abs({read} {sign}) <= {self.slack!r}")

    def points(self) -> tuple[Any, ...]:
        return (self.value - self.slack, self.value, self.value + self.slack)


@dataclass(frozen=True, slots=True)
class Presence:
    """The value is given (`present`) or is not (`none`).

    An argument is given unless it is None; a setting (`truthy`) is given unless it is unset, empty
    or, for a vendor op, not there.
    """

    present: bool
    truthy: bool = False

    def holds(self, value: Any) -> bool:
        given = bool(value) if self.truthy else value is not None
        return given is self.present

    def expression(self, subject: Subject, read: str) -> str:
        if self.truthy:
            return read if self.present else f"not {read}"
        return f"{read} is {'not ' if self.present else ''}None"

    def points(self) -> tuple[Any, ...]:
        return ()


Test = OneOf | Compare | Between | Divisible | PowerOfTwo | Near | Presence
NUMERIC = (Compare, Between, Divisible, PowerOfTwo, Near)


def _numeric(subject: Subject, read: str, text: str, kind: str = "(int, float)") -> str:
    """Return the test behind the question whether there is a number, where there may be none."""
    if subject.scope == "server":
        return f"(isinstance({read}, {kind}) and {text})"
    return f"({read} is not None and {text})" if subject.optional else text


def _within(read: str, shown: Any) -> str:
    return f"{read} in ({', '.join(shown)})"


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float))


def _same(value: Any, other: Any) -> bool:
    return not isinstance(value, bool) and (value is other or bool(value == other))

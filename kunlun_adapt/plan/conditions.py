"""The condition language of tiers: parsed once into a typed form, analysed and compiled from it.

A condition maps a subject (what is read) to a test (what must hold). Subjects read only what the
host knows without waiting for the device; tensor values are out of reach.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

DTYPES = (
    "float16", "bfloat16", "float32", "float64", "int8", "uint8", "int16", "int32", "int64",
    "bool", "float8_e4m3fn", "float8_e5m2",
)  # fmt: skip

NEAR = 1e-5
"""Relative tolerance of `~ value`: wide enough for a float32 constant read back as a double."""

_SUBJECT = re.compile(
    r"(?P<root>[A-Za-z_][A-Za-z0-9_]*)"
    r"(?:\.(?P<prop>dtype|ndim|shape|stride|contiguous|device)(?:\[(?P<index>-?\d+)\])?)?\Z"
)
_GLOBAL = re.compile(r"(?P<root>env|server|op)\.(?P<name>[A-Za-z_][A-Za-z0-9_.]*)\Z")
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_COMPARE = re.compile(rf"(?P<op><=|>=|==|!=|<|>)\s*(?P<value>{_NUMBER})\Z")
_BETWEEN = re.compile(rf"(?P<low>{_NUMBER})\s*\.\.\s*(?P<high>{_NUMBER})\Z")
_DIVISIBLE = re.compile(r"%\s*(?P<by>\d+)\s*==\s*(?P<rest>\d+)\Z")
_NEAR = re.compile(rf"~\s*(?P<value>{_NUMBER})\Z")

_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "<=": lambda a, b: bool(a <= b),
    ">=": lambda a, b: bool(a >= b),
    "<": lambda a, b: bool(a < b),
    ">": lambda a, b: bool(a > b),
    "==": lambda a, b: bool(a == b),
    "!=": lambda a, b: bool(a != b),
}


class ConditionError(ValueError):
    """A condition that cannot be read; the message says what is wrong."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What a condition reads: `x.dtype`, `x.shape[0]`, `rows`, `residual`, `env.NAME`, …

    `scope` is "call" for what is read per call, else "env", "server" or "op" (read once).
    """

    text: str
    scope: str
    root: str
    prop: str | None = None
    index: int | None = None

    def expression(self) -> str:
        """Return the Python text that reads the subject inside a dispatch function."""
        if self.scope != "call":
            return f"_{self.scope}_{self.root.replace('.', '_')}"
        if self.prop is None:
            return self.root
        if self.prop == "contiguous":
            return f"{self.root}.is_contiguous()"
        if self.prop == "device":
            return f"{self.root}.device.type"
        if self.prop == "stride":
            return f"{self.root}.stride({self.index})"
        if self.prop == "shape":
            return f"{self.root}.shape[{self.index}]"
        return f"{self.root}.{self.prop}"


@dataclass(frozen=True, slots=True)
class OneOf:
    """The value is one of these; `dtype` values are dtype names."""

    values: tuple[Any, ...]

    def holds(self, value: Any) -> bool:
        return any(value is v or (type(value) is type(v) and value == v) for v in self.values) or (
            any(_numbers(value, v) and value == v for v in self.values)
        )

    def expression(self, subject: Subject, read: str) -> str:
        shown = [v if subject.prop == "dtype" else repr(v) for v in self.values]
        if len(shown) == 1:
            value = self.values[0]
            same = "is" if subject.prop == "dtype" or isinstance(value, bool) else "=="
            return f"{read} {same} {shown[0]}"
        return f"{read} in ({', '.join(shown)})"

    def points(self) -> tuple[Any, ...]:
        return self.values


@dataclass(frozen=True, slots=True)
class Compare:
    """The value compares so with a number."""

    op: str
    value: int | float

    def holds(self, value: Any) -> bool:
        return value is not None and _OPERATORS[self.op](value, self.value)

    def expression(self, subject: Subject, read: str) -> str:
        return f"{read} {self.op} {self.value!r}"

    def points(self) -> tuple[Any, ...]:
        return _around(self.value)


@dataclass(frozen=True, slots=True)
class Between:
    """The value lies in a closed interval."""

    low: int | float
    high: int | float

    def holds(self, value: Any) -> bool:
        return value is not None and bool(self.low <= value <= self.high)

    def expression(self, subject: Subject, read: str) -> str:
        return f"{self.low!r} <= {read} <= {self.high!r}"

    def points(self) -> tuple[Any, ...]:
        return _around(self.low) + _around(self.high)


@dataclass(frozen=True, slots=True)
class Divisible:
    """The value leaves this rest."""

    by: int
    rest: int

    def holds(self, value: Any) -> bool:
        return value is not None and bool(value % self.by == self.rest)

    def expression(self, subject: Subject, read: str) -> str:
        return f"{read} % {self.by} == {self.rest}"

    def points(self) -> tuple[Any, ...]:
        return (self.rest, self.rest + 1, self.by + self.rest, 2 * self.by + self.rest)


@dataclass(frozen=True, slots=True)
class PowerOfTwo:
    """The value is 1, 2, 4, 8, …"""

    def holds(self, value: Any) -> bool:
        return isinstance(value, int) and value > 0 and value & (value - 1) == 0

    def expression(self, subject: Subject, read: str) -> str:
        return f"({read} > 0 and {read} & ({read} - 1) == 0)"

    def points(self) -> tuple[Any, ...]:
        return (1, 3, 4, 96, 128)


@dataclass(frozen=True, slots=True)
class Near:
    """The value equals a constant up to `NEAR`, relative."""

    value: float

    def holds(self, value: Any) -> bool:
        return value is not None and math.isclose(value, self.value, rel_tol=NEAR)

    def expression(self, subject: Subject, read: str) -> str:
        slack = abs(self.value) * NEAR
        return f"abs({read} - {self.value!r}) <= {slack!r}"

    def points(self) -> tuple[Any, ...]:
        return (self.value, self.value * 2)


@dataclass(frozen=True, slots=True)
class Presence:
    """The argument is given (`present`) or is None (`none`)."""

    present: bool

    def holds(self, value: Any) -> bool:
        return (value is not None) is self.present

    def expression(self, subject: Subject, read: str) -> str:
        if subject.scope != "call":
            return read if self.present else f"not {read}"
        return f"{read} is {'not ' if self.present else ''}None"

    def points(self) -> tuple[Any, ...]:
        return ()


Test = OneOf | Compare | Between | Divisible | PowerOfTwo | Near | Presence


@dataclass(frozen=True, slots=True)
class Condition:
    """One subject and the test that it must pass."""

    subject: Subject
    test: Test

    def expression(self) -> str:
        """Return the condition as Python text."""
        return self.test.expression(self.subject, self.subject.expression())

    def holds(self, values: Mapping[str, Any]) -> bool:
        """Tell whether the condition holds for values keyed by subject text."""
        return self.test.holds(values.get(self.subject.text))


def parse_subject(text: str) -> Subject:
    """Read the left side of a condition. Raises ConditionError."""
    outer = _GLOBAL.match(text)
    if outer:
        return Subject(text, outer["root"], outer["name"])
    inner = _SUBJECT.match(text)
    if not inner:
        raise ConditionError(
            f"{text!r} cannot be read: write a parameter, a derived name, "
            "PARAM.dtype|ndim|shape[i]|stride[i]|contiguous|device, env.NAME, server.ARG or op.NAME"
        )
    prop, index = inner["prop"], inner["index"]
    if prop in ("shape", "stride") and index is None:
        raise ConditionError(f"{text!r} needs an index, such as {text}[0]")
    if prop not in ("shape", "stride") and index is not None:
        raise ConditionError(f"{text!r} takes no index")
    return Subject(text, "call", inner["root"], prop, None if index is None else int(index))


def parse_test(subject: Subject, value: Any) -> Test:
    """Read the right side of a condition. Raises ConditionError."""
    if isinstance(value, list):
        if not value:
            raise ConditionError("an empty list holds for nothing")
        return OneOf(tuple(_literal(subject, v) for v in value))
    if not isinstance(value, str):
        return OneOf((_literal(subject, value),)) if value is not None else Presence(False)
    text = value.strip()
    if text in ("none", "present", "absent"):
        return Presence(text == "present")
    if text == "power_of_two":
        return PowerOfTwo()
    if found := _COMPARE.match(text):
        return Compare(found["op"], _number(found["value"]))
    if found := _BETWEEN.match(text):
        low, high = _number(found["low"]), _number(found["high"])
        if low > high:
            raise ConditionError(f"{text!r} is empty: {low} is above {high}")
        return Between(low, high)
    if found := _DIVISIBLE.match(text):
        by, rest = int(found["by"]), int(found["rest"])
        if by == 0 or rest >= by:
            raise ConditionError(f"{text!r} holds for nothing")
        return Divisible(by, rest)
    if found := _NEAR.match(text):
        return Near(float(found["value"]))
    if re.match(r"[<>=!%~]|.*\.\.", text):
        raise ConditionError(
            f"{text!r} cannot be read: write '<= 64', '64..1024', '% 128 == 0', '~ 1e-6', "
            "power_of_two, none, present, a value or a list"
        )
    return OneOf((_literal(subject, text),))


def parse_when(when: Mapping[str, Any]) -> tuple[Condition, ...]:
    """Read a whole `when:` mapping, in its order. Raises ConditionError."""
    conditions = []
    for text, value in when.items():
        subject = parse_subject(text)
        conditions.append(Condition(subject, parse_test(subject, value)))
    return tuple(conditions)


def _literal(subject: Subject, value: Any) -> Any:
    if subject.prop == "dtype":
        if value not in DTYPES:
            raise ConditionError(f"{value!r} is not a dtype (one of {', '.join(DTYPES)})")
        return value
    if isinstance(value, (list, dict)):
        raise ConditionError(f"{value!r} is not a plain value")
    return value


def _numbers(*values: Any) -> bool:
    return all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in values)


def _number(text: str) -> int | float:
    return int(text) if re.match(r"[-+]?\d+\Z", text) else float(text)


def _around(value: int | float) -> tuple[int | float, ...]:
    if isinstance(value, int):
        return (value - 1, value, value + 1)
    return (value * 0.5, value, value * 1.5 + 1)

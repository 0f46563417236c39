"""The condition language of tiers: parsed once into a typed form, analysed and compiled from it.

A condition maps a subject (what is read) to a test (what must hold). Subjects read only what the
host knows without waiting for the device; tensor values are out of reach.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kunlun_adapt.plan.subject import COUNTS, DTYPES, ConditionError, Subject, parse_subject
from kunlun_adapt.plan.value_tests import (
    NUMERIC,
    Between,
    Compare,
    Divisible,
    Near,
    OneOf,
    PowerOfTwo,
    Presence,
    Test,
)

__all__ = [
    "DTYPES",
    "Condition",
    "ConditionError",
    "Subject",
    "parse_subject",
    "parse_test",
    "parse_when",
]

_NUMBER = r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"
_COMPARE = re.compile(rf"(?P<op><=|>=|==|!=|<|>)\s*(?P<value>{_NUMBER})\Z")
_BETWEEN = re.compile(rf"(?P<low>{_NUMBER})\s*\.\.\s*(?P<high>{_NUMBER})\Z")
_DIVISIBLE = re.compile(r"%\s*(?P<by>[0-9]{1,12})\s*==\s*(?P<rest>[0-9]{1,12})\Z")
_NEAR = re.compile(rf"~\s*(?P<value>{_NUMBER})\Z")
_LONGEST_NUMBER = 40


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


def parse_test(subject: Subject, value: Any) -> Test:
    """Read the right side of a condition. Raises ConditionError."""
    test = _parse(subject, value)
    fault = _misfit(subject, test)
    if fault:
        raise ConditionError(f"{subject.text}: {fault}", subject=subject.text)
    return test


def parse_when(when: Mapping[str, Any]) -> tuple[Condition, ...]:
    """Read a whole `when:` mapping, in its order. Raises ConditionError."""
    conditions = []
    for text, value in when.items():
        subject = parse_subject(text)
        conditions.append(Condition(subject, parse_test(subject, value)))
    return tuple(conditions)


def _parse(subject: Subject, value: Any) -> Test:
    once = subject.scope in ("env", "op")
    if isinstance(value, list):
        if not value:
            raise ConditionError("an empty list holds for nothing")
        return OneOf(tuple(_literal(v) for v in value))
    if not isinstance(value, str):
        return OneOf((_literal(value),)) if value is not None else Presence(False, once)
    text = value.strip()
    if text in ("none", "present", "absent"):
        return Presence(text == "present", once)
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
        near = float(_number(found["value"]))
        if near == 0:
            raise ConditionError(f"{text!r}: nothing but 0 is near 0; write '<= 1e-6' or 0")
        return Near(near)
    if re.match(r"[<>=!%~]|.*\.\.", text):
        raise ConditionError(
            f"{text!r} cannot be read: write '<= 64', '64..1024', '% 128 == 0', '~ 1e-6', "
            "power_of_two, none, present, a value or a list"
        )
    return OneOf((text,))


def _misfit(subject: Subject, test: Test) -> str | None:
    """Say why a subject can never meet a test, whatever the operator declares."""
    values = test.values if isinstance(test, OneOf) else ()
    if subject.scope == "op" and not isinstance(test, Presence):
        return "a vendor op is present or none"
    if subject.scope == "env":
        if isinstance(test, Presence) or (values and all(isinstance(v, str) for v in values)):
            return None
        return "environment values are text: put the value in quotes, or write present or none"
    if subject.prop == "dtype":
        wrong = [v for v in values if not isinstance(v, str) or v not in DTYPES]
        if not isinstance(test, OneOf):
            return "a dtype is compared by name, such as float16 or [float16, bfloat16]"
        return f"{wrong[0]!r} is not a dtype (one of {', '.join(DTYPES)})" if wrong else None
    if subject.prop == "contiguous" and not (len(values) == 1 and isinstance(values[0], bool)):
        return "contiguous is true or false"
    if subject.prop == "device":
        named = bool(values) and all(isinstance(v, str) for v in values)
        return None if named else "a device is compared by name, such as cpu"
    if subject.prop in COUNTS:
        whole = bool(values) and all(type(v) is int for v in values)
        if not whole and not isinstance(test, NUMERIC):
            return f"{subject.prop} is a whole number"
    return None


def _literal(value: Any) -> Any:
    if isinstance(value, (list, dict)):
        raise ConditionError(f"{value!r} is not a plain value")
    if isinstance(value, float) and not math.isfinite(value):
        raise ConditionError(f"{value!r} is not a finite number")
    return value


def _number(text: str) -> int | float:
    if len(text) > _LONGEST_NUMBER:
        raise ConditionError(f"a number of {len(text)} characters; use at most {_LONGEST_NUMBER}")
    value = int(text) if re.match(r"[-+]?[0-9]+\Z", text) else float(text)
    if not math.isfinite(value):
        raise ConditionError(f"{text!r} is not a finite number")
    return value

"""The values at which a tier table is tried: one for each way in which its tests can come out.

Values of one subject that every test judges alike are one value, so an axis is as short as the
tests allow and misses none of their combinations. Whole numbers are tried at and around every bound
and, where a test asks for a divisor, across all its rests.
"""

from __future__ import annotations

import ast
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kunlun_adapt.plan.derive import Derived, subject_text
from kunlun_adapt.plan.params import Param
from kunlun_adapt.plan.subject import COUNTS, Subject, parse_subject
from kunlun_adapt.plan.value_tests import Divisible, PowerOfTwo, Test

LARGE = 1 << 20
MOST_RESTS = 4096
GIVEN = "given"
OTHER = "another value"

_ANY = (-math.inf, math.inf)


@dataclass(frozen=True, slots=True)
class Axis:
    """The values of one subject; `beyond` are those that the operator does not declare."""

    values: tuple[Any, ...]
    beyond: frozenset[Any] = frozenset()


def make_axis(
    subject: Subject,
    tests: Sequence[Test],
    params: Mapping[str, Param],
    derived: Mapping[str, Derived],
    dtypes: Sequence[str],
) -> Axis:
    """Return the axis of a subject that these tests judge; None stands for an absent argument."""
    points = [p for test in tests for p in test.points()]
    param = params.get(subject.root) if subject.scope == "call" else None
    absent = (None,) if param is not None and param.optional else ()
    if subject.prop == "dtype":
        axis = _dtypes(param, points, dtypes)
        return Axis((*axis.values, *absent), axis.beyond)
    distinct: dict[tuple[Any, ...], Any] = {}
    for value in (*_values(subject, points, tests, params, derived), *absent):
        distinct.setdefault((value is None, *(t.holds(value) for t in tests)), value)
    return Axis(tuple(distinct.values()))


def _dtypes(param: Param | None, points: list[Any], declared: Sequence[str]) -> Axis:
    if param is not None and param.dtype is not None:
        return Axis((param.dtype,))
    named = tuple(dict.fromkeys(points))
    if not set(declared) & set(named):
        return Axis((*named, OTHER))
    beyond = tuple(d for d in named if d not in declared)
    return Axis((*declared, *beyond), frozenset(beyond))


def _values(
    subject: Subject,
    points: list[Any],
    tests: Sequence[Test],
    params: Mapping[str, Param],
    derived: Mapping[str, Derived],
) -> Iterable[Any]:
    if subject.scope != "call":
        return (GIVEN, *points, *_floats(points), True, False, None)
    if subject.prop == "contiguous" or subject.kind == "bool":
        return (True, False)
    if subject.prop in COUNTS or (subject.root in derived and subject.kind == "int"):
        low, high = _range(subject, params, derived)
        return _integers(points, tests, low, high)
    if subject.kind == "int":
        return _integers(points, tests, *_ANY)
    if subject.kind == "float":
        return _floats(points)
    if subject.kind == "str" or subject.prop == "device":
        return (OTHER, *points)
    return (GIVEN, *points)


def _integers(
    points: Iterable[Any], tests: Sequence[Test], low: float, high: float
) -> Iterable[int]:
    numbers = [p for p in points if isinstance(p, (int, float)) and not isinstance(p, bool)]
    top = max([LARGE, *(2 * math.ceil(abs(n)) for n in numbers)])
    edges = {1, top} | {int(b) for b in (low, high) if math.isfinite(b)}
    edges |= {side for n in numbers for side in (math.floor(n), math.ceil(n))}
    starts = edges | {e + step for e in edges for step in (-1, 1)}
    found = set(starts)
    rests = math.lcm(*(t.by for t in tests if isinstance(t, Divisible)))
    if rests > 1:
        most = min(rests, MOST_RESTS)
        found |= {s + r for s in starts for r in range(1 - most, most)}
    if any(isinstance(t, PowerOfTwo) for t in tests):
        found |= {1 << shift for shift in range(top.bit_length() + 1)}
    return sorted((n for n in found if low <= n <= high), key=lambda n: (n < 0, n))


def _floats(points: Iterable[Any]) -> Iterable[float]:
    numbers = sorted({p for p in points if isinstance(p, (int, float)) and not isinstance(p, bool)})
    if not numbers:
        return [1.0]
    between = [(a + b) / 2 for a, b in itertools.pairwise(numbers)]
    least, greatest = numbers[0], numbers[-1]
    return [*numbers, *between, least - 1 - abs(least), greatest + 1 + abs(greatest)]


def _range(
    subject: Subject, params: Mapping[str, Param], derived: Mapping[str, Derived]
) -> tuple[float, float]:
    """Return the least and the greatest value that a whole-number subject can have."""
    param = params.get(subject.root)
    if subject.root in derived:
        return _interval(derived[subject.root].tree, params, derived)
    if param is None or subject.prop not in COUNTS:
        return _ANY
    if subject.prop == "ndim":
        return (param.ndim, param.ndim) if param.ndim is not None else (1, 8)
    fixed = param.dimension(subject.index or 0) if subject.prop == "shape" else None
    return (fixed, fixed) if fixed is not None else (1, math.inf)


def _interval(
    node: ast.expr, params: Mapping[str, Param], derived: Mapping[str, Derived]
) -> tuple[float, float]:
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return (node.value, node.value)
    if isinstance(node, ast.UnaryOp):
        low, high = _interval(node.operand, params, derived)
        return (-high, -low)
    if isinstance(node, ast.Compare):
        return (0, 1)
    if not isinstance(node, ast.BinOp):
        return _range(parse_subject(subject_text(node)), params, derived)
    a, b = _interval(node.left, params, derived), _interval(node.right, params, derived)
    if isinstance(node.op, ast.Add):
        return (a[0] + b[0], a[1] + b[1])
    if isinstance(node.op, ast.Sub):
        return (a[0] - b[1], a[1] - b[0])
    if isinstance(node.op, ast.Mult):
        corners = [x * y if x and y else 0.0 for x in a for y in b]
        return (min(corners), max(corners))
    if isinstance(node.op, ast.Mod):
        return (0, b[1] - 1) if b[0] >= 1 else _ANY
    if b[0] < 1:
        return _ANY
    return (min(a[0], _floor(a[0], b[1])), max(a[1], 0)) if a[0] < 0 else (
        _floor(a[0], b[1]), _floor(a[1], b[0])
    )  # fmt: skip


def _floor(a: float, b: float) -> float:
    """Return `a // b` for a ≥ 0 or -inf and b ≥ 1, where either may be infinite."""
    if math.isinf(a):
        return a
    return 0.0 if math.isinf(b) and a >= 0 else -1.0 if math.isinf(b) else a // b

"""An operator's tiers, analysed: which calls no tier serves, and which tiers no call reaches.

The declared axes are cut at every bound that a tier names; within one cell of that grid the same
tier serves, so the grid is exact over the declared axes. A derived name is an axis of its own.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kunlun_adapt.documents import OperatorRecipe
from kunlun_adapt.plan.conditions import Condition, Subject, parse_when
from kunlun_adapt.plan.derive import Derived, parse_derive
from kunlun_adapt.plan.params import Param, parse_param

MAX_CELLS = 100_000
LARGE = 1 << 20
GIVEN = "given"
OTHER = "another value"


@dataclass(frozen=True, slots=True)
class TierTable:
    """An operator's parameters, derived names and tiers in their parsed form."""

    params: dict[str, Param]
    derived: dict[str, Derived]
    tiers: tuple[tuple[str, tuple[Condition, ...]], ...]
    dtypes: tuple[str, ...]

    def serving(self, values: Mapping[str, Any]) -> str | None:
        """Return the tier that serves values keyed by subject text, or None."""
        for name, conditions in self.tiers:
            if all(c.holds(values) for c in conditions):
                return name
        return None

    def subjects(self) -> list[Subject]:
        """Return every subject that a tier reads, in order of appearance."""
        found = {c.subject.text: c.subject for _, conditions in self.tiers for c in conditions}
        return list(found.values())


@dataclass(frozen=True, slots=True)
class TierAnalysis:
    """What the grid shows: an example of a gap, how many cells are gaps, unreachable tiers."""

    cells: int
    gaps: int
    example: dict[str, Any] | None
    unreachable: tuple[str, ...]
    exact: bool


def tier_table(recipe: OperatorRecipe) -> TierTable:
    """Parse what the tiers of a recipe say. Raises ConditionError at the first fault."""
    return TierTable(
        params={n: parse_param(n, t) for n, t in recipe.params.items()},
        derived={n: parse_derive(n, t) for n, t in recipe.derive.items()},
        tiers=tuple((tier.name, parse_when(tier.when)) for tier in recipe.kernels),
        dtypes=tuple(recipe.precision),
    )


def analyse(table: TierTable) -> TierAnalysis:
    """Walk the grid of a tier table."""
    axes = {s.text: _axis(table, s) for s in table.subjects()}
    total = 1
    for values in axes.values():
        total *= len(values)
    cells: Iterator[dict[str, Any]] = (
        dict(zip(axes, combination, strict=True))
        for combination in itertools.product(*axes.values())
    )
    exact = total <= MAX_CELLS
    if not exact:
        cells = _sample(axes)
    reached: set[str] = set()
    gaps = count = 0
    example: dict[str, Any] | None = None
    for cell in cells:
        if not _possible(table, cell):
            continue
        count += 1
        name = table.serving(cell)
        if name is None:
            gaps += 1
            example = example or cell
        else:
            reached.add(name)
    unreachable = tuple(n for n, _ in table.tiers if n not in reached) if exact else ()
    return TierAnalysis(count, gaps, example, unreachable, exact)


def call_values(
    table: TierTable, shapes: Mapping[str, tuple[int, ...]], dtype: str, given: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the subjects' values for tensors of these shapes, all contiguous and of one dtype.

    `given` supplies scalars and overrides; arguments in neither are None.
    """
    values: dict[str, Any] = dict(given)
    subjects = table.subjects()
    names = {s for d in table.derived.values() for s in d.subjects}
    for text in [s.text for s in subjects] + sorted(names):
        root = text.split(".")[0]
        if text in values or root in table.derived:
            continue
        shape = shapes.get(root)
        values[text] = None if shape is None else _tensor_value(text, root, shape, dtype)
    for name, derived in table.derived.items():
        try:
            values[name] = derived.value(values)
        except (KeyError, TypeError, ZeroDivisionError):
            values[name] = None
    return values


def _tensor_value(text: str, root: str, shape: tuple[int, ...], dtype: str) -> Any:
    prop = text[len(root) + 1 :]
    if prop == "":
        return GIVEN
    if prop == "dtype":
        return dtype
    if prop == "ndim":
        return len(shape)
    if prop == "contiguous":
        return True
    if prop == "device":
        return "cpu"
    index = int(prop[prop.index("[") + 1 : -1])
    if not -len(shape) <= index < len(shape):
        return None
    if prop.startswith("shape"):
        return shape[index]
    stride = 1
    for size in shape[index % len(shape) + 1 :]:
        stride *= size
    return stride


def _axis(table: TierTable, subject: Subject) -> tuple[Any, ...]:
    tests = [c.test for _, cs in table.tiers for c in cs if c.subject.text == subject.text]
    points = list(dict.fromkeys(p for t in tests for p in t.points()))
    if subject.scope != "call":
        return (*points, OTHER, None) if points else (GIVEN, None)
    param = table.params.get(subject.root)
    if subject.root in table.derived:
        return _numeric(points, low=0)
    if param is None:
        return (*points, OTHER, None)
    if subject.prop == "dtype":
        declared = set(table.dtypes)
        return table.dtypes if declared & set(points) else (*points, OTHER)
    if subject.prop == "ndim":
        return (param.ndim,) if param.ndim is not None else _numeric(points, low=1, high=5)
    if subject.prop == "shape":
        fixed = param.dimension(subject.index or 0)
        return (fixed,) if fixed is not None else _numeric(points, low=1)
    if subject.prop == "stride":
        return _numeric(points, low=1)
    if subject.prop == "contiguous":
        return (True, False)
    if subject.prop == "device":
        return (*points, OTHER)
    return _scalar(param, points)


def _scalar(param: Param, points: list[Any]) -> tuple[Any, ...]:
    nothing: tuple[Any, ...] = (None,) if param.optional else ()
    if param.kind == "bool":
        return (True, False, *nothing)
    if param.kind in ("int", "float"):
        return (*_numeric(points, low=None), *nothing)
    if param.kind == "str":
        return (*points, OTHER, *nothing)
    return (GIVEN, *nothing)


def _numeric(points: list[Any], low: int | None, high: int = LARGE) -> tuple[Any, ...]:
    numbers = {p for p in points if isinstance(p, (int, float)) and not isinstance(p, bool)}
    numbers |= {1, high} if low is not None else {1}
    return tuple(sorted(n for n in numbers if (low is None or n >= low) and n <= high))


def _possible(table: TierTable, cell: Mapping[str, Any]) -> bool:
    """A property of an absent argument cannot be read: such cells are no calls."""
    return not any(
        value is None and name in table.params and any(k.startswith(f"{name}.") for k in cell)
        for name, value in cell.items()
    )


def _sample(axes: Mapping[str, tuple[Any, ...]]) -> Iterator[dict[str, Any]]:
    chooser = random.Random(0)
    for _ in range(MAX_CELLS):
        yield {name: chooser.choice(values) for name, values in axes.items()}

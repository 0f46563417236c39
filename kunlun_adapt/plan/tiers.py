"""An operator's tiers, analysed: which calls no tier serves, and which tiers no call reaches.

Every subject that a tier reads is an axis; the grid of all axes holds one cell for each way in
which the conditions can come out, so it is exact over the declared axes. A derived name is an axis
of its own: what it has in common with the arguments that it is made of is not followed.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from kunlun_adapt.documents import OperatorRecipe
from kunlun_adapt.plan.axes import GIVEN, OTHER, Axis, make_axis
from kunlun_adapt.plan.conditions import Condition, parse_when
from kunlun_adapt.plan.derive import Derived, parse_derive
from kunlun_adapt.plan.params import Param, parse_param
from kunlun_adapt.plan.subject import DTYPES, ConditionError, Subject, parse_subject
from kunlun_adapt.plan.value_tests import NUMERIC, Divisible, OneOf, PowerOfTwo, Presence, Test

__all__ = [
    "GIVEN",
    "MAX_CELLS",
    "OTHER",
    "TierAnalysis",
    "TierTable",
    "analyse",
    "axis_of",
    "call_values",
    "tier_table",
]

MAX_CELLS = 100_000

RESERVED = frozenset(
    {"UNSET", "arguments", "fell_back", "is_compiling", "refuse", "require", "result", "served"}
    | {"setting", "tally", "unserved", "self"}
)
"""Names that a generated operator module uses itself."""


@dataclass(frozen=True, slots=True)
class TierTable:
    """An operator's parameters, derived names and tiers in their parsed form."""

    params: dict[str, Param]
    derived: dict[str, Derived]
    tiers: tuple[tuple[str, tuple[Condition, ...]], ...]
    dtypes: tuple[str, ...]
    reads: Mapping[str, Param] = field(default_factory=dict)

    def serving(self, values: Mapping[str, Any]) -> str | None:
        """Return the tier that serves values keyed by subject text, or None."""
        # A grid has thousands of cells: this is no place for generators.
        for name, conditions in self.tiers:
            for condition in conditions:
                if not condition.test.holds(values.get(condition.subject.text)):
                    break
            else:
                return name
        return None

    def subjects(self) -> list[Subject]:
        """Return every subject that a tier reads, in order of appearance."""
        found = {c.subject.text: c.subject for _, conditions in self.tiers for c in conditions}
        return list(found.values())


@dataclass(frozen=True, slots=True)
class TierAnalysis:
    """What the grid shows: an example of a gap, how many cells are gaps, unreachable tiers.

    Where `exact` is false the grid was too large and a sample was tried: what it shows holds, and
    nothing is said of unreachable tiers.
    """

    cells: int
    gaps: int
    example: dict[str, Any] | None
    unreachable: tuple[str, ...]
    exact: bool


def tier_table(recipe: OperatorRecipe) -> TierTable:
    """Parse what the tiers of a recipe say. Raises ConditionError at the first fault."""
    params = {n: parse_param(n, t) for n, t in recipe.params.items()}
    reads = {n: _read(n, path, params) for n, path in recipe.reads.items()}
    derived: dict[str, Derived] = {}
    for name in (*params, *recipe.derive, *reads):
        fault = name_fault(name)
        if fault is not None:
            raise ConditionError(fault)
    readable = {**params, **reads}
    for name, text in recipe.derive.items():
        if name in readable:
            raise ConditionError(f"derived name {name!r} is also a parameter")
        formula = parse_derive(name, text)
        for read in formula.subjects:
            kind = _kind(parse_subject(read), readable, derived, f"derive {name}")
            if kind not in ("int", "bool", "float"):
                raise ConditionError(f"derive {name}: {read} is not a number")
        derived[name] = formula
    tiers = []
    for tier in recipe.kernels:
        try:
            conditions = [_typed(c, readable, derived) for c in parse_when(tier.when)]
        except ConditionError as error:
            raise ConditionError(f"tier {tier.name}: {error}", tier.name, error.subject) from error
        tiers.append((tier.name, tuple(conditions)))
    return TierTable(params, derived, tuple(tiers), tuple(recipe.precision), reads)


def name_fault(name: str) -> str | None:
    """Say why a parameter, a derived name or a read must not be called so."""
    if name in ("env", "server", "op"):
        return f"{name!r} is no name for a parameter: conditions read settings so"
    if name in RESERVED or name in DTYPES or name.startswith(("kernel_", "returns_", "_")):
        return f"{name!r} is no name for a parameter: generated code uses it"
    return None


def _read(name: str, path: str, params: Mapping[str, Param]) -> Param:
    """Return a declared attribute as what conditions may read: a text. Raises ConditionError."""
    root, dot, _ = path.partition(".")
    if root not in params or params[root].kind != "object" or not dot:
        raise ConditionError(f"reads {name}: {path!r} is no attribute of a parameter kind object")
    if name in params:
        raise ConditionError(f"reads {name}: a parameter has that name")
    return Param(name, "str", (), False, params[root].optional)


def analyse(table: TierTable) -> TierAnalysis:
    """Walk the grid of a tier table."""
    axes = {s.text: axis_of(table, s) for s in table.subjects()}
    total = 1
    for axis in axes.values():
        total *= len(axis.values)
    exact = total <= MAX_CELLS
    reached: set[str] = set()
    gaps = count = 0
    example: dict[str, Any] | None = None
    roots = {text: root for text in axes if (root := text.split(".")[0]) in table.params}
    for cell in _cells(axes) if exact else _sample(axes):
        if not _possible(roots, cell):
            continue
        count += 1
        name = table.serving(cell)
        if name is not None:
            reached.add(name)
        elif not any(cell[text] in axis.beyond for text, axis in axes.items()):
            gaps += 1
            example = cell if example is None else example
    unreachable = tuple(n for n, _ in table.tiers if n not in reached) if exact else ()
    return TierAnalysis(count, gaps, example, unreachable, exact)


def call_values(
    table: TierTable, shapes: Mapping[str, tuple[int, ...]], dtype: str, given: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the subjects' values for tensors of these shapes, all contiguous and of one dtype.

    `given` supplies scalars and overrides. Of arguments in neither, optional ones are None and
    flags false; any other is unknown, and so is what is derived from it: they have no value here.
    """
    values: dict[str, Any] = dict(given)
    declared = {**table.params, **table.reads}
    names = {s for d in table.derived.values() for s in d.subjects}
    for text in [s.text for s in table.subjects()] + sorted(names):
        root = text.split(".")[0]
        if text in values or root in table.derived:
            continue
        param, shape = declared.get(root), shapes.get(root)
        if shape is not None:
            values[text] = _tensor_value(parse_subject(text), shape, dtype)
        elif param is None or param.optional:
            values[text] = None
        elif param.kind == "bool":
            values[text] = False
    for name, derived in table.derived.items():
        try:
            values[name] = derived.value(values)
        except KeyError:
            continue
        except (TypeError, ZeroDivisionError):
            values[name] = None
    return values


def _kind(
    subject: Subject,
    params: Mapping[str, Param],
    derived: Mapping[str, Derived],
    where: str | None = None,
) -> str | None:
    """Return the kind of what a subject reads. Raises ConditionError where it reads nothing."""
    text = subject.text if where is None else f"{where}: {subject.text}"
    if subject.scope != "call":
        return None
    if subject.root in derived:
        if subject.prop is not None:
            raise ConditionError(f"{text}: a derived name has no {subject.prop}")
        return derived[subject.root].kind
    param = params.get(subject.root)
    if param is None:
        known = ", ".join([*params, *derived])
        raise ConditionError(f"{text}: {subject.root} is no parameter or derived name ({known})")
    if subject.prop is None:
        return param.kind
    if param.kind != "Tensor":
        raise ConditionError(f"{text}: {subject.root} is declared {param.kind}, not a tensor")
    index, ndim = subject.index, param.ndim
    if index is not None and ndim is not None and not -ndim <= index < ndim:
        raise ConditionError(f"{text}: {subject.root} has {ndim} dimensions")
    return {"contiguous": "bool", "dtype": "dtype", "device": "str"}.get(subject.prop, "int")


def _typed(
    condition: Condition, params: Mapping[str, Param], derived: Mapping[str, Derived]
) -> Condition:
    """Return the condition with its subject's kind. Raises ConditionError where they do not fit."""
    subject, test = condition.subject, condition.test
    try:
        kind = _kind(subject, params, derived)
    except ConditionError as error:
        raise ConditionError(str(error), subject=subject.text) from error
    if subject.scope != "call" or subject.prop is not None:
        return condition
    fault = _unfit(kind, test)
    if fault:
        raise ConditionError(f"{subject.text}: {fault}", subject=subject.text)
    param = params.get(subject.root)
    optional = param is not None and param.optional
    return Condition(replace(subject, kind=kind, optional=optional), test)


def _unfit(kind: str | None, test: Test) -> str | None:
    """Say why a test cannot judge a bare name of this kind."""
    if isinstance(test, Presence):
        return None
    if kind == "Tensor":
        return "values of a tensor are out of reach; ask for none, present or a property"
    values = [v for v in test.values if v is not None] if isinstance(test, OneOf) else []
    if kind == "bool":
        fits = isinstance(test, OneOf) and all(isinstance(v, bool) for v in values)
        return None if fits else "is true or false"
    if kind in ("str", "object"):
        if isinstance(test, NUMERIC) or (kind == "str" and any(type(v) is not str for v in values)):
            return f"is declared {kind}; compare it with a text or a list of texts"
        return None
    if any(isinstance(v, (bool, str)) for v in values):
        return f"is a number, not {values[0]!r}"
    if kind == "float" and isinstance(test, (Divisible, PowerOfTwo)):
        return "is declared float, and only whole numbers are divisible"
    return None


def _tensor_value(subject: Subject, shape: tuple[int, ...], dtype: str) -> Any:
    index = subject.index
    if index is not None and not -len(shape) <= index < len(shape):
        return None
    if subject.prop == "shape" and index is not None:
        return shape[index]
    if subject.prop == "stride" and index is not None:
        stride = 1
        for size in shape[index % len(shape) + 1 :]:
            stride *= size
        return stride
    known = {None: GIVEN, "dtype": dtype, "ndim": len(shape), "contiguous": True, "device": "cpu"}
    return known[subject.prop]


def axis_of(table: TierTable, subject: Subject) -> Axis:
    """Return the values at which the tiers' tests of a subject come out differently."""
    tests = [c.test for _, cs in table.tiers for c in cs if c.subject.text == subject.text]
    readable = {**table.params, **table.reads}
    return make_axis(subject, list(dict.fromkeys(tests)), readable, table.derived, table.dtypes)


def _possible(roots: Mapping[str, str], cell: Mapping[str, Any]) -> bool:
    """An argument is absent in all that is read of it, or in none: other cells are no calls."""
    absent: dict[str, bool] = {}
    for text, root in roots.items():
        missing = cell[text] is None
        if absent.setdefault(root, missing) != missing:
            return False
    return True


def _cells(axes: Mapping[str, Axis]) -> Iterator[dict[str, Any]]:
    for combination in itertools.product(*(a.values for a in axes.values())):
        yield dict(zip(axes, combination, strict=True))


def _sample(axes: Mapping[str, Axis]) -> Iterator[dict[str, Any]]:
    chooser = random.Random(0)
    for _ in range(MAX_CELLS):
        yield {name: chooser.choice(axis.values) for name, axis in axes.items()}

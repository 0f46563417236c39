"""What is wrong with an operator's declarations, formulas and conditions, each at its own node."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kunlun_adapt.check.wording import did_you_mean
from kunlun_adapt.diagnostics import Position
from kunlun_adapt.documents import Document, OperatorRecipe
from kunlun_adapt.plan import (
    Condition,
    ConditionError,
    Derived,
    Param,
    Subject,
    parse_derive,
    parse_param,
    parse_subject,
    parse_test,
)
from kunlun_adapt.plan.conditions import Compare, OneOf, Presence

NUMERIC = ("ndim", "shape", "stride")


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that conditions cannot read or say."""

    message: str
    position: Position
    suggestion: str | None = None


@dataclass(frozen=True, slots=True)
class Names:
    """What a condition of one operator may read."""

    params: Mapping[str, Param]
    derived: Mapping[str, Derived]
    reads: frozenset[str]

    @property
    def all(self) -> list[str]:
        return [*self.params, *self.derived, *self.reads]


def operator_faults(recipe: Document[OperatorRecipe]) -> list[Fault]:
    """Return every fault of a recipe's `params`, `derive`, tiers and failures, in that order."""
    faults: list[Fault] = []
    model = recipe.model
    params: dict[str, Param] = {}
    for name, text in model.params.items():
        try:
            params[name] = parse_param(name, text)
        except ConditionError as error:
            faults.append(Fault(str(error), recipe.at("params", name)))
    whole = len(params) == len(model.params)
    names = Names(params, {}, frozenset(model.reads))
    derived: dict[str, Derived] = {}
    for name, text in model.derive.items():
        faults += _derive(recipe, name, text, Names(params, derived, names.reads), whole)
        try:
            derived[name] = parse_derive(name, text)
        except ConditionError as error:
            faults.append(Fault(str(error), recipe.at("derive", name)))
    names = Names(params, derived, names.reads)
    # Where a declaration is broken, everything that reads it would look unknown.
    if whole and len(derived) == len(model.derive):
        for i, tier in enumerate(model.kernels):
            faults += _when(recipe, ("kernels", i, "when"), tier.when, names)
        for i, failure in enumerate(model.failures):
            faults += _when(recipe, ("failures", i, "when"), failure.when, names, loose=True)
    return faults


def _derive(
    recipe: Document[OperatorRecipe], name: str, text: str, names: Names, whole: bool
) -> Iterator[Fault]:
    here = recipe.key_at("derive", name)
    if name in recipe.model.params:
        yield Fault(f"the derived name {name!r} is also a parameter", here, "give it another name")
    if name in names.reads:
        yield Fault(f"the derived name {name!r} is also read", here, "give it another name")
    try:
        subjects = parse_derive(name, text).subjects
    except ConditionError:
        return
    for subject in subjects if whole else ():
        root = subject.partition(".")[0].partition("[")[0]
        at = recipe.at("derive", name)
        if root not in names.all:
            later = root in recipe.model.derive
            reason = "is derived further down" if later else "is nothing that it can read"
            tip = "move it above" if later else did_you_mean(root, names.all)
            yield Fault(f"{text!r}: {root!r} {reason}", at, tip)
        elif root in names.params:
            param = names.params[root]
            if param.optional:
                tip = "test for `present` in a tier and read the property there"
                yield Fault(f"{text!r} reads {root!r}, which may be None", at, tip)
            else:
                wrong = _property(parse_subject(subject), param)
                if wrong:
                    yield Fault(f"{text!r}: {wrong}", at)


def _when(
    recipe: Document[OperatorRecipe],
    path: tuple[str | int, ...],
    when: Mapping[str, Any],
    names: Names,
    *,
    loose: bool = False,
) -> Iterator[Fault]:
    present: set[str] = set()
    for text, value in when.items():
        try:
            subject = parse_subject(text)
        except ConditionError as error:
            tip = did_you_mean(text.partition(".")[0], names.all)
            yield Fault(str(error), recipe.key_at(*path, text), tip)
            continue
        fault = _subject(subject, names, present)
        if fault is not None:
            yield Fault(fault[0], recipe.key_at(*path, text), fault[1])
            continue
        try:
            test = parse_test(subject, value)
        except ConditionError as error:
            yield Fault(f"{text}: {error}", recipe.at(*path, text))
            continue
        if isinstance(test, Presence) and test.present:
            present.add(subject.root)
        wrong = _test(Condition(subject, test), names, loose)
        if wrong is not None:
            yield Fault(f"{text}: {wrong[0]}", recipe.at(*path, text), wrong[1])


def _subject(subject: Subject, names: Names, present: set[str]) -> tuple[str, str | None] | None:
    """Return what is wrong with what a condition reads, and what to write instead."""
    if subject.scope == "server":
        return (
            f"{subject.text}: server arguments cannot be read in conditions yet",
            "use an environment variable: env.NAME",
        )
    if subject.scope != "call":
        return None
    root = subject.root
    if root in names.params:
        param = names.params[root]
        wrong = _property(subject, param)
        if wrong:
            return wrong, None
        if subject.prop is not None and param.optional and root not in present:
            return (
                f"{subject.text} is read although {root!r} may be None",
                f"put `{root}: present` before it",
            )
        return None
    if root in names.derived or root in names.reads:
        if subject.prop is not None:
            return f"{subject.text}: {root!r} is a plain value, without properties", None
        return None
    return f"{root!r} is nothing that a condition can read", did_you_mean(root, names.all)


def _property(subject: Subject, param: Param) -> str | None:
    if subject.prop is None:
        return None
    if param.kind != "Tensor":
        return f"{subject.text}: {param.name!r} is declared {param.kind}, not Tensor"
    if subject.prop in ("shape", "stride") and param.ndim is not None:
        index = subject.index or 0
        if not -param.ndim <= index < param.ndim:
            return f"{subject.text}: {param.name!r} is declared with {param.ndim} dimensions"
    return None


def _test(condition: Condition, names: Names, loose: bool) -> tuple[str, str | None] | None:
    subject, test = condition.subject, condition.test
    if subject.scope == "op" and not isinstance(test, Presence):
        return "an op is there or not", "write present or absent"
    if subject.scope != "call":
        return None
    param = names.params.get(subject.root)
    whole = param is not None and param.kind == "Tensor" and subject.prop is None
    if whole and not isinstance(test, Presence):
        return (
            "tensor values are out of reach: reading them would wait for the device",
            f"read {subject.root}.dtype, .ndim, .shape[i], .stride[i], .contiguous, .device, "
            "or write present or none",
        )
    numeric = subject.prop in NUMERIC or (param is not None and param.kind in ("int", "float"))
    if numeric and isinstance(test, OneOf):
        words = [v for v in test.values if isinstance(v, str)]
        if words:
            return f"it is a number, and {words[0]!r} is none", None
    texts = param is not None and param.kind in ("bool", "str", "object")
    if texts and subject.prop is None and isinstance(test, Compare):
        kind = param.kind if param is not None else ""
        return f"{subject.root!r} is declared {kind}, which does not compare so", None
    if subject.prop is not None and isinstance(test, Presence) and not loose:
        return "a property is always there", f"write `{subject.root}: present`"
    return None

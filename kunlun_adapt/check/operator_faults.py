"""What is wrong with an operator's declarations, formulas and conditions, each at its own node.

The plan's own parser judges; it stops at the first fault of a recipe, so each part is handed to it
alone, in a trial recipe that has nothing else which could be wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kunlun_adapt.check.wording import did_you_mean, nearest
from kunlun_adapt.diagnostics import Position
from kunlun_adapt.documents import GOLDEN, Document, OperatorRecipe, Tier
from kunlun_adapt.plan import (
    ConditionError,
    Param,
    Subject,
    TierTable,
    parse_derive,
    parse_param,
    parse_subject,
    parse_test,
    tier_table,
)
from kunlun_adapt.plan.guarded import unguarded
from kunlun_adapt.plan.subject import INDEXED, PROPERTIES
from kunlun_adapt.plan.tensor_values import asks_for_values, tensor_read, tensor_read_in_formula
from kunlun_adapt.plan.tiers import name_fault


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that conditions cannot read or say; `values` where it would read tensor values."""

    message: str
    position: Position
    suggestion: str | None = None
    values: bool = False


def operator_faults(recipe: Document[OperatorRecipe]) -> list[Fault]:
    """Return every fault of a recipe's `params`, `derive`, tiers and failures, in that order."""
    faults = list(_params(recipe))
    if not faults:
        faults = list(_reads(recipe))
    if not faults:
        faults = list(_formulas(recipe))
    # Where a declaration is broken, everything that reads it would look unknown.
    if not faults:
        model = recipe.model
        for i, tier in enumerate(model.kernels):
            faults += _when(recipe, ("kernels", i, "when"), tier.when)
        if not faults:
            faults += _absent(recipe, tier_table(model))
        for i, failure in enumerate(model.failures):
            faults += _when(recipe, ("failures", i, "when"), failure.when)
    return faults


def _params(recipe: Document[OperatorRecipe]) -> Iterator[Fault]:
    for name, text in recipe.model.params.items():
        try:
            parse_param(name, text)
        except ConditionError as error:
            yield Fault(str(error), recipe.at("params", name))
        fault = name_fault(name)
        if fault is not None:
            yield Fault(fault, recipe.key_at("params", name), "give it another name")


def _reads(recipe: Document[OperatorRecipe]) -> Iterator[Fault]:
    for name, path in recipe.model.reads.items():
        fault = name_fault(name)
        if fault is not None:
            yield Fault(fault, recipe.key_at("reads", name), "give it another name")
            continue
        read = tensor_read(path, _declared(recipe.model))
        if read is not None:
            yield _values(f"reads {name}: {path}", read, recipe.at("reads", name))
            continue
        alone = recipe.model.model_copy(update={"reads": {name: path}})
        try:
            _trial(alone, {}, {})
        except ConditionError as error:
            yield Fault(str(error), recipe.at("reads", name))


def _formulas(recipe: Document[OperatorRecipe]) -> Iterator[Fault]:
    model = recipe.model
    params = {n: parse_param(n, t) for n, t in model.params.items()}
    sound: dict[str, str] = {}
    for name, text in model.derive.items():
        fault = name_fault(name)
        if name in params:
            fault = f"the derived name {name!r} is also a parameter"
        if fault is not None:
            yield Fault(fault, recipe.key_at("derive", name), "give it another name")
            continue
        read = tensor_read_in_formula(text, params)
        if read is not None:
            yield _values(f"derive {name}: {text}", read, recipe.at("derive", name))
            continue
        try:
            _trial(model, {**sound, name: text}, {})
        except ConditionError as error:
            tip = _formula_tip(model, name, text, [*params, *sound])
            yield Fault(str(error), recipe.at("derive", name), tip)
            continue
        sound[name] = text
        optional = _optional(text, params)
        if optional is not None:
            yield Fault(
                f"{name} is computed for every call, and {optional!r} may be None",
                recipe.at("derive", name),
                f"read {optional}.… in a tier, behind `{optional}: present`",
            )


def _formula_tip(model: OperatorRecipe, name: str, text: str, known: list[str]) -> str | None:
    try:
        roots = [parse_subject(s).root for s in parse_derive(name, text).subjects]
    except ConditionError:
        return None
    unknown = next((r for r in roots if r not in known), None)
    if unknown in model.derive:
        return f"move {unknown} above it"
    return did_you_mean(unknown, known) if unknown else None


def _optional(text: str, params: Mapping[str, Param]) -> str | None:
    roots = [parse_subject(s).root for s in parse_derive("", text).subjects]
    return next((r for r in roots if r in params and params[r].optional), None)


def _when(
    recipe: Document[OperatorRecipe], path: tuple[str | int, ...], when: Mapping[str, Any]
) -> Iterator[Fault]:
    sound = _sound(recipe.model, when)
    for text, value in when.items():
        key, place = recipe.key_at(*path, text), recipe.at(*path, text)
        read = tensor_read(text, _declared(recipe.model))
        if read is not None:
            yield _values(text, read, key)
            continue
        try:
            subject = parse_subject(text)
        except ConditionError as error:
            yield Fault(str(error), key, _spelling_tip(text, _names(recipe)))
            continue
        try:
            test = parse_test(subject, value)
        except ConditionError as error:
            yield Fault(_named(text, error), place)
            continue
        if asks_for_values(subject, test, _declared(recipe.model)):
            yield _values(f"{text}: {value}", subject.root, place)
            continue
        if sound:
            continue
        try:
            _trial(recipe.model, recipe.model.derive, {text: value})
        except ConditionError as error:
            # What a bare name is asked stands in its value; what else is wrong is what is read.
            asked = subject.prop is None and subject.root in _names(recipe)
            tip = None if asked else _subject_tip(subject, recipe)
            message = _named(text, error.__cause__ or error)
            yield Fault(message, place if asked else key, tip)


def _spelling_tip(text: str, names: list[str]) -> str | None:
    """Suggest the property where the name before it is known, else the name."""
    root, _, prop = text.partition(".")
    if root in names:
        near = nearest(prop.partition("[")[0], PROPERTIES)
        return f"did you mean {root}.{near}{'[0]' if near in INDEXED else ''}?" if near else None
    return did_you_mean(root, names)


def _subject_tip(subject: Subject, recipe: Document[OperatorRecipe]) -> str | None:
    names = _names(recipe)
    return None if subject.root in names else did_you_mean(subject.root, names)


def _named(text: str, error: BaseException) -> str:
    message = str(error)
    return message if message.startswith((text, repr(text))) else f"{text}: {message}"


def _names(recipe: Document[OperatorRecipe]) -> list[str]:
    return [*recipe.model.params, *recipe.model.derive]


def _declared(model: OperatorRecipe) -> dict[str, Param]:
    """Return the parameters whose declarations can be read."""
    found = {}
    for name, text in model.params.items():
        try:
            found[name] = parse_param(name, text)
        except ConditionError:
            continue
    return found


def _values(text: str, tensor: str, position: Position) -> Fault:
    return Fault(
        f"{text} asks for what the tensor {tensor} holds: the host would wait for the device on "
        "every call, and a captured graph would keep the answer of its first",
        position,
        f"read {tensor}.dtype, .ndim, .shape[i], .stride[i], .contiguous or .device, whether it is "
        "present, or pass the number as a scalar parameter",
        values=True,
    )


def _trial(model: OperatorRecipe, derive: Mapping[str, str], when: Mapping[str, Any]) -> TierTable:
    """Parse a recipe that has these formulas and one tier with this condition."""
    tier = Tier(name=GOLDEN, when=dict(when))
    return tier_table(model.model_copy(update={"derive": dict(derive), "kernels": [tier]}))


def _sound(model: OperatorRecipe, when: Mapping[str, Any]) -> bool:
    """Tell whether all conditions are sound: each is judged for itself only where one is not."""
    try:
        _trial(model, model.derive, when)
    except ConditionError:
        return False
    return True


def _absent(recipe: Document[OperatorRecipe], table: TierTable) -> Iterator[Fault]:
    """A condition that reads an argument which may be None would raise in the middle of a call."""
    names = [tier.name for tier in recipe.model.kernels]
    for tier, text in unguarded(table):
        root = parse_subject(text).root
        if root not in table.derived:
            yield Fault(
                f"{text} is read although {root!r} may be None",
                recipe.key_at("kernels", names.index(tier), "when", text),
                f"put `{root}: present` before it",
            )

"""KA105: what upstream passes is neither mapped nor ignored, or what is mapped is not there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from kunlun_adapt.check.context import Context
from kunlun_adapt.check.parameters import (
    Place,
    allowed_alone,
    differs,
    ignores_with,
    inserted,
    places,
)
from kunlun_adapt.check.wording import did_you_mean, joined, mapping, nearest, scalar, sequence
from kunlun_adapt.diagnostics import Finding
from kunlun_adapt.documents import Bind
from kunlun_adapt.plan import ConditionError, parse_param
from kunlun_adapt.source.signatures import ANY_VALUE
from kunlun_adapt.source.text import literal_default

CODE = "KA105"
GRID = "$grid"


def rule(context: Context) -> Iterable[Finding]:
    """Compare `args` and `ignores` of every hook and operator place with upstream's signature."""
    for place in places(context):
        new = inserted(context, place)
        # KA114 says more of these.
        yield from _place(place, [n for n in place.free() if not new or n not in new.names])
        if place.operator is not None:
            yield from _operator_params(place, place.operator)


def _place(place: Place, unnamed: list[str]) -> Iterator[Finding]:
    at, known, free = place.at, place.signature.names, place.free()
    for name, path in at.args.items():
        root = path.partition(".")[0]
        if root == GRID and isinstance(at, Bind) and at.style == "launcher":
            continue
        if root not in known:
            tip = did_you_mean(root, free or known, cutoff=40)
            if root == GRID:
                message = f"{name!r} reads {GRID}, which only a launcher's call has"
            else:
                message = f"{name!r} reads {root!r}, which upstream does not have"
            yield place.make(CODE, message, ("args", name), tip, False)
    for index, name in enumerate(at.ignores):
        if name not in known:
            listed = isinstance(at.ignores, list)
            where: tuple[str | int, ...] = ("ignores", index if listed else name)
            message = f"ignores {name!r}, which upstream does not have"
            others = [n for n in at.ignores if n in known]
            tip = did_you_mean(name, free, cutoff=75) or f"drop it: {_ignores(at.ignores, others)}"
            yield place.make(CODE, message, where, tip, not listed)
    if unnamed:
        verb = "are" if unnamed[1:] else "is"
        message = f"upstream passes {joined(unnamed)}, which {verb} neither mapped nor ignored"
        yield place.make(CODE, message, ("target",), ignores_with(place, unnamed))
    yield from _stars(place)
    yield from _defaults(place)


def _defaults(place: Place) -> Iterator[Finding]:
    """A call that leaves a parameter out passes its default, which must not be refused."""
    if not isinstance(place.at.ignores, Mapping):
        return
    for name, allowed in place.at.ignores.items():
        parameter = place.signature.parameter(name)
        if parameter is None or not parameter.has_default or allowed == ANY_VALUE:
            continue
        plain, default = literal_default(parameter.default)
        if plain and differs(default, allowed):
            yield place.make(
                CODE,
                f"ignores {name!r} only as {scalar(allowed)}, and upstream's default is "
                f"{parameter.default}: every call that leaves it out would be refused",
                ("ignores", name),
                f"`ignores: {mapping({**place.at.ignores, name: allowed_alone(parameter)})}`",
            )


def _stars(place: Place) -> Iterator[Finding]:
    """`ignores: {kwargs: null}` would refuse every call: what is empty is `{}`, not null."""
    if not isinstance(place.at.ignores, Mapping):
        return
    for name, allowed in place.at.ignores.items():
        parameter = place.signature.parameter(name)
        if parameter is not None and parameter.kind.startswith("var_") and allowed != ANY_VALUE:
            yield place.make(
                CODE,
                f"{name!r} collects arguments and never equals {allowed!r}",
                ("ignores", name),
                f"`ignores: {mapping({**place.at.ignores, name: ANY_VALUE})}`",
                True,
            )


def _ignores(ignores: Mapping[str, Any] | Sequence[str], names: list[str]) -> str:
    if isinstance(ignores, Mapping):
        return f"`ignores: {mapping({n: ignores[n] for n in names})}`"
    return f"`ignores: {sequence(names)}`"


def _operator_params(place: Place, params: Mapping[str, str]) -> Iterator[Finding]:
    """Every parameter of the operator that is not optional needs something from the call."""
    free = place.free()
    for name, text in params.items():
        if name in place.at.args or _optional(name, text):
            continue
        source = nearest(name, free) or (free[0] if len(free) == 1 else None)
        yield place.make(
            CODE,
            f"the operator's {name!r} gets nothing from the call",
            ("args",),
            f"`args: {mapping({**place.at.args, name: source or '…'})}`",
            False,
        )


def _optional(name: str, text: str) -> bool:
    try:
        return parse_param(name, text).optional
    except ConditionError:
        return True  # KA304 says what is wrong with the declaration

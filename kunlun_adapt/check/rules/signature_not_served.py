"""KA105: what upstream passes is neither mapped nor ignored, or what is mapped is not there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from kunlun_adapt.check.context import Context
from kunlun_adapt.check.parameters import (
    GRID,
    Place,
    Slips,
    differs,
    ignores_edit,
    inserted,
    places,
    slips,
)
from kunlun_adapt.check.wording import did_you_mean, joined, mapping, scalar
from kunlun_adapt.diagnostics import Finding
from kunlun_adapt.source.signatures import ANY_VALUE
from kunlun_adapt.source.text import literal_default

CODE = "KA105"


def rule(context: Context) -> Iterable[Finding]:
    """Compare `args` and `ignores` of every hook and operator place with upstream's signature."""
    for place in places(context):
        found, new = slips(place), inserted(context, place)
        # KA114 says more of the inserted ones, and a slip of what was meant by it.
        spoken_of = {*found.meant, *(new.names if new else ())}
        yield from _place(place, found, [n for n in place.free() if n not in spoken_of])
        yield from _operator_params(place, found)


def _place(place: Place, found: Slips, unnamed: list[str]) -> Iterator[Finding]:
    at, known = place.at, place.signature.names
    for name, meant in found.args.items():
        root = at.args[name].partition(".")[0]
        tip = f"did you mean {meant}?" if meant else did_you_mean(root, known, cutoff=40)
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
            meant = found.ignores[name]
            tip = f"did you mean {meant}?" if meant else f"drop it: {ignores_edit(place)}"
            yield place.make(CODE, message, where, tip, not listed)
    if unnamed:
        verb = "are" if unnamed[1:] else "is"
        message = f"upstream passes {joined(unnamed)}, which {verb} neither mapped nor ignored"
        yield place.make(CODE, message, ("target",), ignores_edit(place))
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
                ignores_edit(place),
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
                ignores_edit(place),
                True,
            )


def _operator_params(place: Place, found: Slips) -> Iterator[Finding]:
    """Every parameter of the operator that is not optional needs something from the call."""
    for name, source in found.operator.items():
        yield place.make(
            CODE,
            f"the operator's {name!r} gets nothing from the call",
            ("args",),
            f"`args: {mapping({**place.at.args, name: source or '…'})}`",
            False,
        )

"""KA105: what upstream passes is neither mapped nor ignored, or what is mapped is not there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

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
    unserved,
)
from kunlun_adapt.check.proposed import leave_out
from kunlun_adapt.check.wording import did_you_mean, joined, mapping, scalar
from kunlun_adapt.diagnostics import Finding, Mend
from kunlun_adapt.source.signatures import ANY_VALUE
from kunlun_adapt.source.text import literal_default

CODE = "KA105"
ALIKE = 75
"""How like a parameter that is used already a name must be to be taken for a slip of it."""


def rule(context: Context) -> Iterable[Finding]:
    """Compare `args` and `ignores` of every hook and operator place with upstream's signature."""
    for place in places(context):
        found, new = slips(place), inserted(context, place)
        # KA114 says more of the inserted ones, and a slip of what was meant by it.
        spoken_of = {*found.meant, *(new.names if new else ())}
        yield from _place(context, place, found, [n for n in place.free() if n not in spoken_of])
        yield from _operator_params(place, found)


def _place(context: Context, place: Place, found: Slips, unnamed: list[str]) -> Iterator[Finding]:
    yield from _lost_args(context, place, found)
    yield from _lost_ignores(place, found)
    if unnamed:
        verb = "are" if unnamed[1:] else "is"
        message = f"upstream passes {joined(unnamed)}, which {verb} neither mapped nor ignored"
        yield place.make(CODE, message, ("target",), ignores_edit(place))
    yield from _stars(place)
    yield from _defaults(place)


def _lost_args(context: Context, place: Place, found: Slips) -> Iterator[Finding]:
    """What `args` reads and upstream does not pass; what is to be dropped is said at once."""
    args, known = place.at.args, place.signature.names
    dropped = []
    for name, meant in found.args.items():
        root = args[name].partition(".")[0]
        tip = f"did you mean {meant}?" if meant else did_you_mean(root, known, cutoff=ALIKE)
        mend: Mend | str | None = _reading(place, found, tip) if meant and tip else tip
        if root == GRID:
            message = f"{name!r} reads {GRID}, which only a launcher's call has"
        elif tip is None:
            dropped.append(name)
            continue
        else:
            message = f"{name!r} reads {root!r}, which upstream does not have"
        yield place.make(CODE, message, ("args", name), mend, False)
    if dropped:
        roots = list(dict.fromkeys(args[name].partition(".")[0] for name in dropped))
        verb = "read" if dropped[1:] else "reads"
        message = f"{joined(dropped)} {verb} {joined(roots)}, which upstream does not have"
        without = _without(context, place, dropped)
        yield place.make(CODE, message, ("args", dropped[0]), without, False)


def _reading(place: Place, found: Slips, text: str) -> Mend:
    """Return the edit that lets every name of `args` read the parameter that was meant."""
    args = dict(place.at.args)
    for name, meant in found.args.items():
        if meant:
            _, dot, rest = args[name].partition(".")
            args[name] = f"{meant}{dot}{rest}"
    return place.mend(text, "renamed_parameter", {"args": args})


def _without(context: Context, place: Place, names: list[str]) -> Mend:
    """Return the edit that takes names out of `args`, or the place, where it needs one of them."""
    args = {name: path for name, path in place.at.args.items() if name not in names}
    needed = [name for name in unserved(args, place.operator or {}) if name in names]
    them = "them" if names[1:] else "it"
    if needed:
        verb = "are" if needed[1:] else "is"
        out = leave_out(context, place.binding)
        said = f"{joined(needed)} {verb} not optional: if nothing serves for {them}, {out.text}"
        return out.saying(said)
    text = f"drop {them}: `args: {mapping(args)}`"
    return place.mend(text, "dropped_argument", {"args": args or None})


def _lost_ignores(place: Place, found: Slips) -> Iterator[Finding]:
    """What is ignored and upstream does not have; what is merely to be dropped is said at once."""
    ignores, listed = place.at.ignores, isinstance(place.at.ignores, list)
    dropped = [name for name, meant in found.ignores.items() if meant is None]
    for index, name in enumerate(ignores):
        if name not in found.ignores or name in dropped[1:]:
            continue
        where: tuple[str | int, ...] = ("ignores", index if listed else name)
        meant = found.ignores[name]
        names = [name] if meant else dropped
        them = "them" if names[1:] else "it"
        whole = ignores_edit(place)
        text = f"did you mean {meant}?" if meant else f"drop {them}: {whole.text}"
        tip = replace(whole, text=text, kind="renamed_parameter" if meant else whole.kind)
        message = f"ignores {joined(names)}, which upstream does not have"
        yield place.make(CODE, message, where, tip, not listed)


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

"""KA105: what upstream passes is neither mapped nor ignored, or what is mapped is not there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kunlun_adapt.check.context import Context
from kunlun_adapt.check.wording import did_you_mean, joined, mapping, nearest, sequence
from kunlun_adapt.diagnostics import Finding
from kunlun_adapt.documents import Bind, Document, HookAt
from kunlun_adapt.plan import WRAPPING, ConditionError, parse_param
from kunlun_adapt.source.signatures import ANY_VALUE
from kunlun_adapt.source.text import literal_default
from kunlun_adapt.upstream import Parameter, Signature, Symbol

BOUND = ("method", "classmethod", "property")
GRID = "$grid"


@dataclass(frozen=True, slots=True)
class Place:
    """One place where a call of upstream's is read: `path` leads to its `args` and `ignores`."""

    document: Document[Any]
    path: tuple[str | int, ...]
    at: HookAt | Bind
    binding: str
    call: Symbol
    signature: Signature

    @property
    def receiver(self) -> str | None:
        """The name of `self` or `cls`, which needs no mapping."""
        names = self.signature.names
        return names[0] if names and self.call.kind in BOUND else None

    def make(self, message: str, path: Sequence[str | int], tip: str | None, key: bool) -> Finding:
        """Make a finding at a key or a value below the place."""
        where = (*self.path, *path)
        return Finding.of(
            "KA105",
            f"{message}; upstream: {self.at.target.rpartition('.')[2]}{self.signature.text()}",
            self.document.key_at(*where) if key else self.document.at(*where),
            binding=self.binding,
            target=self.at.target,
            upstream=self.call.location,
            suggestion=tip,
        )


def rule(context: Context) -> Iterable[Finding]:
    """Compare `args` and `ignores` of every hook and operator place with upstream's signature."""
    for hook in context.hooks:
        symbol = hook.symbol
        if hook.hook.type not in WRAPPING or not isinstance(symbol, Symbol):
            continue
        if symbol.kind != "class" and symbol.signature is not None:
            yield from _place(
                Place(
                    hook.document,
                    hook.path,
                    hook.at,
                    hook.binding.id,
                    symbol,
                    symbol.signature,
                )
            )
    for kernel in context.kernels:
        call = kernel.call
        if not isinstance(call, Symbol) or call.signature is None or call.kind == "class":
            continue
        place = Place(
            kernel.recipe,
            kernel.path,
            kernel.bind,
            kernel.binding.id,
            call,
            call.signature,
        )
        yield from _place(place)
        yield from _operator_params(place, kernel.recipe.model.params)


def _place(place: Place) -> Iterator[Finding]:
    at, known = place.at, place.signature.names
    used = {path.partition(".")[0] for path in at.args.values()} | set(at.ignores)
    free = [n for n in known if n not in used and n != place.receiver]
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
            yield place.make(message, ("args", name), tip, False)
    for index, name in enumerate(at.ignores):
        if name not in known:
            listed = isinstance(at.ignores, list)
            where: tuple[str | int, ...] = ("ignores", index if listed else name)
            message = f"ignores {name!r}, which upstream does not have"
            others = [n for n in at.ignores if n in known]
            tip = did_you_mean(name, free, cutoff=75) or f"drop it: {_ignores(at.ignores, others)}"
            yield place.make(message, where, tip, not listed)
    if free:
        verb = "are" if free[1:] else "is"
        message = f"upstream passes {joined(free)}, which {verb} neither mapped nor ignored"
        yield place.make(message, ("target",), _add(place, free), False)
    yield from _stars(place)


def _stars(place: Place) -> Iterator[Finding]:
    """`ignores: {kwargs: null}` would refuse every call: what is empty is `{}`, not null."""
    if not isinstance(place.at.ignores, Mapping):
        return
    for name, allowed in place.at.ignores.items():
        parameter = place.signature.parameter(name)
        if parameter is not None and parameter.kind.startswith("var_") and allowed != ANY_VALUE:
            yield place.make(
                f"{name!r} collects arguments and never equals {allowed!r}",
                ("ignores", name),
                f"`ignores: {mapping({**place.at.ignores, name: ANY_VALUE})}`",
                True,
            )


def _add(place: Place, names: list[str]) -> str:
    """Return the `ignores` that would also name the parameters, each with its own default."""
    known = place.signature.names
    ignores = {n: v for n, v in _as_mapping(place.at.ignores).items() if n in known}
    parameters = [p for p in place.signature.parameters if p.name in names]
    added = {p.name: _allowed(p) for p in parameters}
    tip = f"`ignores: {mapping({**ignores, **added})}`"
    return f"map it in `args`, or {tip}" if ANY_VALUE in added.values() else tip


def _allowed(parameter: Parameter) -> Any:
    """The only value with which a parameter may be ignored: its default, if that is a plain one."""
    plain, value = literal_default(parameter.default)
    plain = plain and parameter.has_default and not isinstance(value, (list, tuple))
    return value if plain else ANY_VALUE


def _as_mapping(ignores: Mapping[str, Any] | Sequence[str]) -> dict[str, Any]:
    return dict(ignores) if isinstance(ignores, Mapping) else dict.fromkeys(ignores, ANY_VALUE)


def _ignores(ignores: Mapping[str, Any] | Sequence[str], names: list[str]) -> str:
    if isinstance(ignores, Mapping):
        return f"`ignores: {mapping({n: ignores[n] for n in names})}`"
    return f"`ignores: {sequence(names)}`"


def _operator_params(place: Place, params: Mapping[str, str]) -> Iterator[Finding]:
    """Every parameter of the operator that is not optional needs something from the call."""
    used = {path.partition(".")[0] for path in place.at.args.values()} | set(place.at.ignores)
    free = [n for n in place.signature.names if n not in used and n != place.receiver]
    for name, text in params.items():
        if name in place.at.args or _optional(name, text):
            continue
        source = nearest(name, free) or (free[0] if len(free) == 1 else None)
        yield place.make(
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

"""Which parameters of an upstream call a binding neither maps nor ignores, and which are new."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from packaging.version import Version

from kunlun_adapt.check.context import Context
from kunlun_adapt.check.kinds import unfit
from kunlun_adapt.check.wording import mapping, nearest, sequence
from kunlun_adapt.diagnostics import EntryChange, Finding, Mend
from kunlun_adapt.diagnostics.mend import Kind
from kunlun_adapt.documents import Bind, Document, HookAt
from kunlun_adapt.plan import (
    ConditionError,
    HookBinding,
    KernelBinding,
    bind_groups,
    parse_param,
)
from kunlun_adapt.source.signatures import ANY_VALUE
from kunlun_adapt.source.text import literal_default
from kunlun_adapt.upstream import Missing, Parameter, Signature, Symbol

RECEIVERS = ("method", "classmethod", "property")
GRID = "$grid"
POSITIONAL = ("positional_only", "positional")


@dataclass(frozen=True, slots=True)
class Place:
    """One place where a call of upstream's is read: `path` leads to its `args` and `ignores`."""

    document: Document[Any]
    path: tuple[str | int, ...]
    at: HookAt | Bind
    others: tuple[HookAt | Bind, ...]
    """The same binding in other releases."""
    binding: str
    call: Symbol
    signature: Signature
    operator: Mapping[str, str] | None = None
    """The parameters of the operator that is bound, None for a hook."""

    @property
    def receiver(self) -> str | None:
        """The name of `self` or `cls`, which needs no mapping."""
        names = self.signature.names
        return names[0] if names and self.call.kind in RECEIVERS else None

    def free(self) -> list[str]:
        """Return the parameters that are neither mapped nor ignored."""
        used = named(self.at)
        return [n for n in self.signature.names if n not in used and n != self.receiver]

    def make(
        self,
        code: str,
        message: str,
        path: Sequence[str | int],
        tip: Mend | str | None,
        key: bool = False,
    ) -> Finding:
        """Make a finding at a key or a value below the place."""
        where = (*self.path, *path)
        return Finding.of(
            code,
            f"{message}; upstream: {self.at.target.rpartition('.')[2]}{self.signature.text()}",
            self.document.key_at(*where) if key else self.document.at(*where),
            binding=self.binding,
            target=self.at.target,
            upstream=self.call.location,
            suggestion=tip,
        )

    def mend(
        self, text: str, kind: Kind, values: Mapping[str, Any], asks: Sequence[str] = ()
    ) -> Mend:
        """Make an edit of the place's entry."""
        raw = self.document.raw
        change = EntryChange(raw.file, raw.index, self.path, values)
        return Mend(text, kind, (change,), tuple(asks))


@dataclass(frozen=True, slots=True)
class Slips:
    """Names that seem to be misspelt or left out, with the free parameters that they stand for.

    One slip is one finding: of a parameter that is meant elsewhere nothing else is to be said.
    """

    args: Mapping[str, str | None]
    """The keys of `args` that read what upstream does not have."""
    ignores: Mapping[str, str | None]
    """The ignored names that upstream does not have."""
    operator: Mapping[str, str | None]
    """The parameters of the operator that get nothing from the call."""

    @property
    def meant(self) -> set[str]:
        named = (*self.args.values(), *self.ignores.values(), *self.operator.values())
        return {name for name in named if name is not None}


@dataclass(frozen=True, slots=True)
class Inserted:
    """Parameters that stand before a mapped one; `since` is where they were not known yet."""

    names: list[str]
    before: str
    since: str | None


def places(context: Context) -> Iterator[Place]:
    """Yield every hook and operator whose call has a signature to compare with.

    Of what cannot be bound in its way at all, KA104 and its like say enough.
    """
    calls: list[tuple[HookBinding | KernelBinding, Symbol | Missing]]
    calls = [(hook, hook.symbol) for hook in context.hooks]
    calls += [(kernel, kernel.call) for kernel in context.kernels]
    for item, call in calls:
        place = None if unfit(context, item) else place_of(item, call)
        if place is not None:
            yield place


def place_of(item: HookBinding | KernelBinding, call: Symbol | Missing) -> Place | None:
    """Return a hook's or an operator's place, were this its call; None where no call is read."""
    if not isinstance(call, Symbol) or call.signature is None or call.kind == "class":
        return None
    id = item.binding.id
    if isinstance(item, HookBinding):
        if not item.maps_call:
            return None
        hooked = tuple(at for at in item.hook.at if at is not item.at)
        return Place(item.document, item.path, item.at, hooked, id, call, call.signature)
    recipe = item.recipe.model
    indexes = bind_groups(recipe).get(id, [])
    bound = tuple(recipe.binds[i] for i in indexes if recipe.binds[i] is not item.bind)
    return Place(item.recipe, item.path, item.bind, bound, id, call, call.signature, recipe.params)


def named(at: HookAt | Bind) -> set[str]:
    """Return the upstream parameters that a place maps or ignores."""
    return {path.partition(".")[0] for path in at.args.values()} | set(at.ignores)


def slips(place: Place) -> Slips:
    """Pair each name that leads nowhere with the free parameter that is spelled most like it.

    Where one name of `args` and one parameter are left over, they are a pair however they are
    spelled: that is how a parameter looks that upstream gave another name.
    """
    known, free = place.signature.names, place.free()
    lost = {k: _root(path) for k, path in place.at.args.items()}
    lost = {k: root for k, root in lost.items() if root not in known and not _grid(place, root)}
    args = {key: _taken(free, (root, 40), (key, 100)) for key, root in lost.items()}
    ignores = {n: _taken(free, (n, 75)) for n in place.at.ignores if n not in known}
    params = place.operator or {}
    operator = {n: _taken(free, (n, 60)) for n in unserved(place.at.args, params)}
    for pairs in (args, operator):
        alone = [key for key, meant in pairs.items() if meant is None]
        if len(alone) == len(free) == 1:
            pairs[alone[0]] = free.pop()
    return Slips(args, ignores, operator)


def _taken(free: list[str], *asked: tuple[str, float]) -> str | None:
    """Take the free parameter that is most like the first of some names that one is like."""
    for word, cutoff in asked:
        found = nearest(word, free, cutoff) if free else None
        if found is not None:
            free.remove(found)
            return found
    return None


def undeclared(args: Mapping[str, str], params: Mapping[str, str]) -> dict[str, str | None]:
    """Return the keys of `args` that the operator does not declare, and which it may mean."""
    free = [name for name in params if name not in args]
    wanted = [name for name in free if not _optional(name, params[name])]
    unknown = {key: _taken(free, (key, 60)) for key in args if key not in params}
    alone = [key for key, meant in unknown.items() if meant is None]
    wanted = [name for name in wanted if name in free]
    if len(alone) == len(wanted) == 1:
        unknown[alone[0]] = wanted[0]
    return unknown


def unserved(args: Mapping[str, str], params: Mapping[str, str]) -> list[str]:
    """Return the operator's parameters that need something from the call and get nothing.

    A parameter that a key of `args` means and misspells is not among them.
    """
    lacking = [n for n, text in params.items() if n not in args and not _optional(n, text)]
    meant = undeclared(args, params).values() if lacking else ()
    return [name for name in lacking if name not in meant]


def _optional(name: str, text: str) -> bool:
    try:
        return parse_param(name, text).optional
    except ConditionError:
        return True  # KA304 says what is wrong with the declaration


def _root(path: str) -> str:
    return path.partition(".")[0]


def _grid(place: Place, root: str) -> bool:
    """Tell whether a name stands for the grid of a kernel's launch."""
    return root == GRID and isinstance(place.at, Bind) and place.at.style == "launcher"


def inserted(context: Context, place: Place) -> Inserted | None:
    """Return the free parameters that upstream put before mapped ones, by all that is known.

    Where a parameter that the binding names is gone, a free one is its new name more likely. Where
    an earlier release is known to have had the parameter, it was only left out here.
    """
    known = place.signature.names
    if named(place.at) - {*known, GRID}:
        return None
    mapped = [known.index(root) for root in _roots(place) if root in known]
    last = max(mapped, default=-1)
    free = set(place.free()) - slips(place).meant
    names = [
        p.name
        for index, p in enumerate(place.signature.parameters)
        if index < last and p.kind in POSITIONAL and p.name in free
    ]
    earlier = _earlier(context, place)
    names = [n for n in names if not any(n in has for _, has in earlier)]
    if not names:
        return None
    follower = next(known[i] for i in sorted(mapped) if i > known.index(names[0]))
    return Inserted(names, follower, earlier[-1][0] if earlier else None)


def _roots(place: Place) -> set[str]:
    return {path.partition(".")[0] for path in place.at.args.values()} - {place.receiver or ""}


def _earlier(context: Context, place: Place) -> list[tuple[str, set[str]]]:
    """Return what else is known of the call: where, and which parameters it has there."""
    found: list[tuple[str, set[str]]] = []
    for at in place.others:
        if at.args or at.ignores:
            found.append((f"in its mapping for {at.sglang}", named(at)))
    if context.lock is not None:
        paths = {place.call.path, *(at.target for at in place.others)}
        for release in context.lock.releases:
            if Version(release) >= Version(context.release):
                continue
            for path in paths:
                symbol = context.lock.symbol(release, path)
                if symbol is not None and symbol.signature is not None:
                    found.append((f"in {release}", set(symbol.signature.names)))
    return found


def ignores_edit(place: Place) -> Mend:
    """Return the `ignores` that mends all that is to be said of it and of unnamed parameters.

    Every finding about a place suggests this one edit: two edits of one key would undo each other.
    """
    stated, found = place.at.ignores, slips(place)
    ignores: dict[str, Any] = {}
    for name, allowed in _as_mapping(stated).items():
        parameter = place.signature.parameter(name)
        if parameter is not None:
            refused = refuses_default(parameter, allowed)
            ignores[name] = allowed_alone(parameter) if refused else allowed
        elif found.ignores.get(name):
            ignores[str(found.ignores[name])] = allowed
    free = [n for n in place.free() if n not in found.meant]
    added = {p.name: allowed_alone(p) for p in place.signature.parameters if p.name in free}
    if not added and not isinstance(stated, Mapping):
        names = list(ignores)
        values = {"ignores": names or None}
        return place.mend(f"`ignores: {sequence(names)}`", "parameters", values)
    whole = {**ignores, **added}
    tip = f"`ignores: {mapping(whole)}`"
    open_ = [name for name, allowed in added.items() if allowed == ANY_VALUE]
    if open_:
        tip = f"map {'them' if open_[1:] else 'it'} in `args`, or {tip}"
    return place.mend(tip, "parameters", {"ignores": whole}, open_)


def refuses_default(parameter: Parameter, allowed: Any) -> bool:
    """Tell whether `ignores` with this value would refuse what a call passes by itself."""
    if allowed == ANY_VALUE:
        return False
    if parameter.kind.startswith("var_"):
        return True
    plain, default = literal_default(parameter.default)
    return parameter.has_default and plain and differs(default, allowed)


def allowed_alone(parameter: Parameter) -> Any:
    """The only value with which a parameter may be ignored: its default, if that is a plain one."""
    plain, value = literal_default(parameter.default)
    plain = plain and parameter.has_default and not isinstance(value, (list, tuple))
    return value if plain else ANY_VALUE


def differs(value: Any, allowed: Any) -> bool:
    """Tell whether the generated guard refuses a value: it asks `is` of None, true and false."""
    if allowed is None or isinstance(allowed, bool):
        return value is not allowed
    return bool(value != allowed)


def _as_mapping(ignores: Mapping[str, Any] | Sequence[str]) -> dict[str, Any]:
    return dict(ignores) if isinstance(ignores, Mapping) else dict.fromkeys(ignores, ANY_VALUE)

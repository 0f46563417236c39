"""What a release offers by name, and what became of it: arguments, variables, models, backends."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping

from kunlun_adapt.documents import in_range
from kunlun_adapt.evolve.diff.facts import words
from kunlun_adapt.evolve.diff.naming import listed
from kunlun_adapt.evolve.diff.records import Change, Fact, Landing, Place, Risk
from kunlun_adapt.evolve.diff.sides import Sides, stated
from kunlun_adapt.upstream import Symbol
from kunlun_adapt.upstream.inventory import Item

_FAMILY = re.compile(r"[A-Z][a-z]+|[A-Z]+(?![a-z])")

NAMED = "the map names it and leaves it to the user"

Names = Mapping[str, tuple[str, str]]
"""Names that the documents use, each with how and in which line they do."""


def server_argument_changes(sides: Sides) -> Iterator[Change]:
    """Yield the server arguments that came, went, or take or default to something else."""
    used = _used_arguments(sides)
    for change in _table(sides, "server_args", "server_args", used):
        if not change.subject.startswith("_"):
            yield change


def environment_changes(sides: Sides) -> Iterator[Change]:
    """Yield the environment variables that came, went, or are read as something else."""
    yield from _table(sides, "environment", "environment", _used_variables(sides))


def _used_arguments(sides: Sides) -> Names:
    found: dict[str, tuple[str, str]] = {}
    document = sides.new.context.document
    for i, arg in enumerate(sides.map.server_args):
        if in_range(arg.sglang, sides.new.release):
            line = stated(document.at("server_args", i))
            found.setdefault(arg.arg, ("the map sets it", line))
            for name in arg.when:
                found.setdefault(name, (f"a condition of {arg.arg}", line))
    for recipe in sides.new.context.catalog.recipes:
        for name in recipe.model.server_args:
            line = stated(recipe.key_at("server_args", name))
            found.setdefault(name, (f"the recipe {recipe.model.name} sets it", line))
    return {**_conditions(sides, "server."), **found}


def _used_variables(sides: Sides) -> Names:
    found: dict[str, tuple[str, str]] = {}
    document = sides.new.context.document
    for i, item in enumerate(sides.map.environment):
        if in_range(item.sglang, sides.new.release):
            line = stated(document.at("environment", i))
            found.setdefault(item.name, ("the map sets it" if item.default else NAMED, line))
    for recipe in sides.new.context.catalog.recipes:
        for name in recipe.model.environment:
            line = stated(recipe.key_at("environment", name))
            found.setdefault(name, (f"the recipe {recipe.model.name} sets it", line))
    return {**_conditions(sides, "env."), **found}


def _conditions(sides: Sides, prefix: str) -> dict[str, tuple[str, str]]:
    """The names that tiers of operators ask for under a prefix."""
    found: dict[str, tuple[str, str]] = {}
    for recipe in sides.new.context.operators:
        for i, tier in enumerate(recipe.model.kernels):
            for name in tier.when:
                if name.startswith(prefix):
                    text = f"a tier of {recipe.model.name} asks for it"
                    line = stated(recipe.key_at("kernels", i, "when", name))
                    found.setdefault(name.removeprefix(prefix), (text, line))
    return found


def _table(sides: Sides, table: str, landing: Landing, used: Names) -> Iterator[Change]:
    old, new = sides.old.table(table), sides.new.table(table)
    for name in sorted(old.keys() | new.keys()):
        facts = list(_item_facts(sides, old.get(name), new.get(name)))
        if not facts:
            continue
        asked, line = used.get(name, (None, ""))
        removed = name not in new
        risk = Risk.LOW
        if asked is not None:
            # A variable that is set in vain does no harm; an argument that is set has to be there.
            risk = Risk.HIGH if removed and landing == "server_args" else Risk.MEDIUM
            risk = Risk.LOW if removed and asked == NAMED else risk
            facts.append(Fact("used", asked))
        yield Change(
            id=f"{landing}/{name}",
            landing=landing,
            subject=name,
            risk=risk,
            facts=tuple(facts),
            old=_place(name, old.get(name)),
            new=_place(name, new.get(name)),
            status="bound" if asked is not None else "unbound",
            roles=("used",) if asked is not None else (),
            stated=line,
        )


def _item_facts(sides: Sides, old: Item | None, new: Item | None) -> Iterator[Fact]:
    if old is None and new is not None:
        what = new.text + (f", {new.default} by default" if new.default is not None else "")
        yield Fact("added", f"new since {sides.old.release}: {what}")
    elif new is None and old is not None:
        yield Fact("removed", f"not in {sides.new.release} any more: {old.text}")
    elif old is not None and new is not None:
        if old.text != new.text:
            yield Fact("type", f"{new.text}, was {old.text}")
        if old.default != new.default:
            yield Fact("default", f"{new.default or 'none'}, was {old.default or 'none'}")
        if old.choices is not None and new.choices is not None:
            come = sorted({*new.choices} - {*old.choices})
            gone = sorted({*old.choices} - {*new.choices})
            if come or gone:
                parts = [f"takes {listed(come)} now"] if come else []
                parts += [f"no longer {listed(gone)}"] if gone else []
                yield Fact("choices", "; ".join(parts))


def _place(name: str, item: Item | None) -> Place | None:
    at = item.location if item is not None else None
    return None if at is None else Place(name, at.file, at.line)


def feature_changes(sides: Sides) -> Iterator[Change]:
    """Yield models, backends, methods and fused operators that came or went."""
    factories = sides.map.factories
    backends = {factories.attention_backend.name} if factories.attention_backend else set()
    tables = (
        ("attention_backends", "attention backend", "attention", backends),
        ("quantization_methods", "quantization method", "quantization", {*factories.quantization}),
        ("models", "model architecture", "", _architectures(sides)),
    )
    for table, what, family, used in tables:
        old, new = sides.old.table(table), sides.new.table(table)
        for name in sorted(old.keys() ^ new.keys()):
            near = family or _relatives(sides, name)
            yield _feature(sides, what, name, near, name in used, old.get(name), new.get(name))
    yield from _fused(sides)
    yield from _kernels(sides)


def _architectures(sides: Sides) -> set[str]:
    recipes = sides.new.context.catalog.recipes
    return {name for recipe in recipes for name in recipe.model.architectures}


def _relatives(sides: Sides, architecture: str) -> str:
    """The recipe whose architectures a model's name begins like; "" without one."""
    stem = _stem(architecture)
    for recipe in sides.new.context.catalog.recipes:
        if any(_stem(name) == stem for name in recipe.model.architectures):
            return recipe.model.name
    return ""


def _stem(architecture: str) -> str:
    found = _FAMILY.match(architecture)
    return found[0].lower() if found else architecture


def _feature(
    sides: Sides,
    what: str,
    name: str,
    family: str,
    used: bool,
    old: Item | None,
    new: Item | None,
) -> Change:
    """Make the change of one registered name."""
    item = new or old
    assert item is not None
    if new is not None:
        fact = Fact("added", f"new {what} since {sides.old.release}: {new.text}")
        risk = Risk.MEDIUM if used or family else Risk.LOW
    else:
        fact = Fact("removed", f"the {what} is not in {sides.new.release} any more")
        risk = Risk.HIGH if used else Risk.LOW
    return Change(
        id=f"feature/{what.replace(' ', '-')}/{name}",
        landing="feature",
        subject=name,
        risk=risk,
        facts=(fact,),
        old=_place(name, old),
        new=_place(name, new),
        family=family,
        roles=(what,),
    )


def _fused(sides: Sides) -> Iterator[Change]:
    """Fused operators that nothing binds, and that the old release did not have anywhere."""
    old, new = sides.old.table("fused_ops"), sides.new.table("fused_ops")
    bound, families = _bound_modules(sides)
    names = {path.rpartition(".")[2] for path in old}
    for path in sorted(new.keys() - old.keys() - bound):
        leaf, module = path.rpartition(".")[2], path.rpartition(".")[0]
        if leaf in names:
            continue  # it moved
        family = families.get(module) or families.get(module.rpartition(".")[0]) or ""
        yield _feature(sides, "fused operator", path, family, False, None, new[path])


def _bound_modules(sides: Sides) -> tuple[set[str], dict[str, str]]:
    """The paths that operators bind, and the family of each module and package that they lie in.

    A package is of the family that most operators in it are of.
    """
    paths: set[str] = set()
    counts: dict[str, Counter[str]] = {}
    for kernel in sides.new.context.kernels:
        symbol = kernel.symbol
        if not isinstance(symbol, Symbol):
            continue
        paths |= {symbol.resolved, kernel.bind.target}
        for holder in (symbol.module, symbol.module.rpartition(".")[0]):
            counts.setdefault(holder, Counter())[kernel.binding.family] += 1
    return paths, {holder: count.most_common(1)[0][0] for holder, count in counts.items()}


def _kernels(sides: Sides) -> Iterator[Change]:
    """Functions beside those that operators bind, under names that the old release has nowhere."""
    bound, families = _bound_modules(sides)
    modules = {k.symbol.module for k in sides.new.context.kernels if isinstance(k.symbol, Symbol)}
    for module in sorted(modules):
        fresh = [
            (name, kind, location)
            for name, kind, location in sides.new.resolver.functions(module)
            if f"{module}.{name}" not in bound and not sides.old.resolver.has_name(name)
        ]
        if not fresh:
            continue
        name, _, location = fresh[0]
        told = ", ".join(f"{name} ({words(kind)})" for name, kind, _ in fresh)
        yield Change(
            id=f"feature/kernels/{module}",
            landing="feature",
            subject=module,
            risk=Risk.LOW,
            facts=(Fact("added", f"new beside what is bound: {told}"),),
            new=Place(f"{module}.{name}", location.file, location.line),
            family=families.get(module, ""),
            roles=("functions of a module that is bound",),
        )

"""KA005: a name that points to nothing in the workspace."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from kunlun_adapt.check.accepted import acceptances
from kunlun_adapt.check.context import Context
from kunlun_adapt.check.hook_args import unmapped_reads
from kunlun_adapt.check.hook_order import unkept_orders
from kunlun_adapt.check.keys import GROUPS, closest_slip, give, given_keys, misspelt_keys
from kunlun_adapt.check.left import member_names, unknown_members
from kunlun_adapt.check.parameters import undeclared
from kunlun_adapt.check.releases import known_releases
from kunlun_adapt.check.wording import did_you_mean
from kunlun_adapt.diagnostics import CODES, Finding, Position, Severity
from kunlun_adapt.documents import Document, OperatorRecipe, in_range
from kunlun_adapt.documents.platform_map import Factories
from kunlun_adapt.plan import CAPABILITIES, PLATFORM
from kunlun_adapt.plan.conditions import DTYPES


def rule(context: Context) -> Iterable[Finding]:
    """Report names of bindings, keys, parameters and dtypes that nothing declares."""
    # What is meant by a misspelt key is as good as given: KA201 and KA202 speak of the key.
    keys = given_keys(context) | set(misspelt_keys(context).values())
    yield from _map(context, keys)
    for recipe in context.operators:
        yield from _operator(recipe, keys)
    yield from _recipes(context)
    yield from unkept_orders(context)
    yield from unmapped_reads(context)
    yield from _acceptances(context)


def _acceptances(context: Context) -> Iterator[Finding]:
    """Accepted codes that no rule has."""
    warnings = [c.code for c in CODES.values() if c.severity is Severity.WARNING]
    for said in acceptances(context):
        for i, accept in enumerate(said.accepts):
            if accept.code not in CODES:
                at = said.document.at(*said.path, i, "code")
                message = f"accepts {accept.code}, which no rule has"
                yield _unknown(message, at, accept.code, warnings, said.binding or None)


def _bindings(context: Context, keys: set[str]) -> set[str]:
    """Every name by which a landing point or a conflict may call a binding."""
    names = {b.id for plan in context.plans for b in plan.bindings} | keys
    names |= {f"factory/{key}" for key in misspelt_keys(context).values()}
    names |= {entry.hook.id for entry in context.catalog.hooks}
    names |= {shim.module for shim in context.map.shims}
    names |= {operator.model.name for operator in context.operators}
    names |= {arg.arg for arg in context.map.server_args}
    names |= context.catalog.unread
    return names | {variable.name for variable in context.map.environment}


def _map(context: Context, keys: set[str]) -> Iterator[Finding]:
    document, model = context.document, context.map
    names = _bindings(context, keys)
    for i, point in enumerate(model.landing_points):
        for j, name in enumerate(point.bindings):
            if not _known(context, name, names):
                at = document.at("landing_points", i, "bindings", j)
                yield _ungiven(context, f"no binding is called {name!r}", at, name, names)
    for i, conflict in enumerate(model.conflicts):
        if len(set(conflict.between)) < 2:
            yield Finding.of(
                "KA005",
                "a conflict needs two different sides",
                document.at("conflicts", i, "between"),
                suggestion="name the other binding, or drop the entry",
            )
        for j, name in enumerate(conflict.between):
            if not _known(context, name, names):
                at = document.at("conflicts", i, "between", j)
                yield _ungiven(context, f"no binding is called {name!r}", at, name, names)
    for name in model.served:
        if name not in keys:
            at = document.key_at("served", name)
            yield _ungiven(context, f"the map gives no {name!r} to speak of", at, name, keys)
    groups = keys | {k.rpartition(".")[0] for k in keys} | {PLATFORM, CAPABILITIES}
    # What is left as upstream has it may be spelled all the same.
    groups |= set(Factories.model_fields) | {left.member for left in model.left_at_default}
    for key, spellings in model.interface.items():
        # A key that is only ever a call is a name of upstream's that code of ours asks for.
        if key not in groups and any(s.call is None for s in spellings):
            at = document.key_at("interface", key)
            yield _ungiven(context, f"the map gives no {key!r} to spell", at, key, groups - {""})
    if model.communication is not None:
        ids = {entry.hook.id for entry in context.catalog.hooks} | context.catalog.unread
        name = model.communication.hook
        if name not in ids:
            at = document.at("communication", "hook")
            yield _unknown(f"no hook is called {name!r}", at, name, ids)
        for j, group in enumerate(model.communication.groups):
            if f"group.{group}" not in model.interface:
                at = document.at("communication", "groups", j)
                message = f"interface.group.{group} does not say what hands out the group"
                yield _unknown(message, at, f"group.{group}", model.interface)
    yield from _left(context)
    shims = {shim.module for shim in model.shims}
    for entry in context.catalog.hooks:
        for j, place in enumerate(entry.hook.at):
            if place.provided_by is not None and place.provided_by not in shims:
                at = entry.document.at(*entry.path, "at", j, "provided_by")
                message = f"no shim provides {place.provided_by!r}"
                yield _unknown(message, at, place.provided_by, shims, entry.hook.id)


def _left(context: Context) -> Iterator[Finding]:
    """Entries of `left_at_default` that hold for no claimed release, or for no member."""
    document, entries = context.document, context.map.left_at_default
    locked = context.lock.releases if context.lock else ()
    releases = known_releases(context.map.sglang, locked)
    for i, left in enumerate(entries):
        if releases and not any(in_range(left.sglang, release) for release in releases):
            yield Finding.of(
                "KA005",
                f"{left.sglang!r} holds for no release that the map claims ({context.map.sglang})",
                document.at("left_at_default", i, "sglang"),
                suggestion="remove the entry, or mend its range",
            )
    for unknown in unknown_members(context):
        yield Finding.of(
            "KA005",
            f"neither the map nor the platform of sglang {context.release} has {unknown.member!r}",
            document.at("left_at_default", unknown.index, "member"),
            suggestion=f"did you mean {unknown.meant}?"
            if unknown.meant
            else did_you_mean(unknown.member, {*member_names(context), *context.map.interface}),
        )


def _operator(recipe: Document[OperatorRecipe], keys: set[str]) -> Iterator[Finding]:
    model, name = recipe.model, recipe.model.name
    served = keys | {k.partition(".")[0] for k in keys} - {"device", "methods"}
    for i, key in enumerate(model.serves):
        if key not in served:
            message = f"{name} serves {key!r}, which the map does not give"
            yield _unknown(message, recipe.at("serves", i), key, served, f"{name}/{key}")
    for dtype in model.precision:
        if dtype not in DTYPES:
            at = recipe.key_at("precision", dtype)
            yield _unknown(f"{dtype!r} is not a dtype", at, dtype, DTYPES)
    for i, bind in enumerate(model.binds):
        for text, meant in undeclared(bind.args, model.params).items():
            at = recipe.key_at("binds", i, "args", text)
            yield Finding.of(
                "KA005",
                f"{name} declares no parameter {text!r}",
                at,
                suggestion=f"did you mean {meant}?" if meant else did_you_mean(text, model.params),
            )
    for text, at in _named_params(recipe):
        if text not in model.params:
            yield _unknown(f"{name} declares no parameter {text!r}", at, text, model.params)
    for i, tier in enumerate(model.kernels):
        for param, how in tier.prepare.items():
            to = getattr(how, "to", None)
            if to is not None and to not in DTYPES:
                at = recipe.at("kernels", i, "prepare", param, "to")
                yield _unknown(f"{to!r} is not a dtype", at, to, DTYPES)


def _named_params(recipe: Document[OperatorRecipe]) -> Iterator[tuple[str, Position]]:
    """Yield every place that names one of the operator's parameters."""
    model = recipe.model
    for i, text in enumerate(model.mutates):
        yield text, recipe.at("mutates", i)
    for i, tier in enumerate(model.kernels):
        for text in tier.prepare:
            yield text, recipe.key_at("kernels", i, "prepare", text)
    for name, path in model.reads.items():
        yield path.partition(".")[0], recipe.at("reads", name)
    for text in model.cases:
        yield text, recipe.key_at("cases", text)


def _recipes(context: Context) -> Iterator[Finding]:
    operators = {operator.model.name for operator in context.operators} | context.catalog.unread
    names = _bindings(context, given_keys(context))
    for recipe in context.catalog.recipes:
        for i, name in enumerate(recipe.model.operators):
            if name not in operators:
                message = f"no operator recipe is called {name!r}"
                yield _unknown(message, recipe.at("operators", i), name, operators)
        for i, name in enumerate(recipe.model.bindings):
            if not _known(context, name, names):
                message = f"no binding is called {name!r}"
                yield _ungiven(context, message, recipe.at("bindings", i), name, names)


def _known(context: Context, name: str, names: set[str]) -> bool:
    """Tell whether a binding has this name, or is one of an operator that could not be read."""
    operator, slash, _ = name.partition("/")
    return name in names or (bool(slash) and operator in context.catalog.unread)


def _ungiven(
    context: Context, message: str, position: Position, key: str, known: set[str]
) -> Finding:
    """A key that the interface spells under a sound first name is more likely not given yet.

    So is a key of a group whose entries the map chooses, unless it is a slip of one that is given.
    """
    first, dot, leaf = key.partition(".")
    sound = {CAPABILITIES, "methods", "device", *Factories.model_fields}
    beside = {name.partition(".")[2] for name in known if name.startswith(f"{first}.")}
    chosen = bool(dot) and first in GROUPS and closest_slip(leaf, beside) is None
    if chosen or (key in context.map.interface and first in sound):
        tip = f"give it: `{give(key)}`, or remove it here"
        return Finding.of("KA005", message, position, suggestion=tip)
    return _unknown(message, position, key, known)


def _unknown(
    message: str, position: Position, name: str, known: Iterable[Any], binding: str | None = None
) -> Finding:
    return Finding.of(
        "KA005", message, position, binding=binding, suggestion=did_you_mean(name, known)
    )

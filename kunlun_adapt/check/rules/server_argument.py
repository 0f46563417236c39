"""KA209: a server argument that the release does not have, or that takes something else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from kunlun_adapt.check.context import Context
from kunlun_adapt.check.server_args import (
    CLASS,
    lacks_server_arg,
    nearest_server_arg,
    server_arg,
    takes,
    unknown_server_arg,
)
from kunlun_adapt.check.wording import scalar, sequence
from kunlun_adapt.diagnostics import Finding, Position
from kunlun_adapt.documents import in_range
from kunlun_adapt.plan import SERVER_ARGS

SHOWN = 6
"""So many of an argument's values are named."""


def rule(context: Context) -> Iterable[Finding]:
    """Look at the arguments that the map sets, and at those of each recipe."""
    if not context.claimed and not context.beyond_claims:
        return
    binding = f"method/{SERVER_ARGS}"
    for i, arg in enumerate(context.map.server_args):
        if not in_range(arg.sglang, context.release):
            continue
        if unknown_server_arg(context, arg, arg.arg):
            yield _unknown(context, arg.arg, context.document.at("server_args", i, "arg"), binding)
            continue
        kind = "default" if arg.force is None else "force"
        value = arg.default if arg.force is None else arg.force
        at = context.document.at("server_args", i, kind)
        yield from _value(context, arg.arg, value, at, binding)
        for name, wanted in arg.when.items():
            place = context.document.at("server_args", i, "when", name)
            yield from _value(context, name, wanted, place, binding)
    for recipe in context.catalog.recipes:
        if not in_range(recipe.model.sglang, context.release):
            continue
        for name, value in recipe.model.server_args.items():
            if lacks_server_arg(context, name):
                yield _unknown(context, name, recipe.key_at("server_args", name), None)
            else:
                at = recipe.at("server_args", name)
                yield from _value(context, name, value, at, None)


def _unknown(context: Context, name: str, position: Position, binding: str | None) -> Finding:
    return Finding.of(
        "KA209",
        f"sglang {context.release} has no server argument {name!r}",
        position,
        binding=binding,
        target=f"{CLASS}.{name}",
        suggestion=nearest_server_arg(context, name),
    )


def _value(
    context: Context, name: str, value: Any, position: Position, binding: str | None
) -> Iterator[Finding]:
    field = server_arg(context, name)
    wanted = takes(context, field) if field is not None else None
    if field is None or wanted is None or not wanted.refuses(value):
        return
    shown = sequence(value) if isinstance(value, list) else scalar(value)
    if wanted.values is not None:
        listed = ", ".join(str(v) for v in wanted.values[:SHOWN])
        more = ", …" if len(wanted.values) > SHOWN else ""
        what, tip = f"one of {listed}{more}", f"one of {listed}{more}"
    else:
        what, tip = wanted.text, f"a value of type {wanted.text}"
    yield Finding.of(
        "KA209",
        f"the server argument {name!r} of sglang {context.release} takes {what}, not {shown}",
        position,
        binding=binding,
        target=field.path,
        upstream=field.location,
        suggestion=f"give {tip}",
    )

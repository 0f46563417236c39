"""Which server arguments a release has, where its files say so in one place."""

from __future__ import annotations

from kunlun_adapt.check.context import Context
from kunlun_adapt.check.wording import did_you_mean
from kunlun_adapt.documents import ServerArg, in_range
from kunlun_adapt.upstream import Missing

CLASS = "sglang.srt.server_args.ServerArgs"
ALWAYS = "model_path"
"""The one argument that every server needs: a class that does not list it is put together elsewhere
(0.5.23 assembles it from the classes in `arg_groups/fields/`)."""


def unknown_server_arg(context: Context, arg: ServerArg, name: str) -> bool:
    """Tell whether `name`, of which this entry speaks, is surely no argument in this release."""
    return in_range(arg.sglang, context.release) and lacks_server_arg(context, name)


def lacks_server_arg(context: Context, name: str) -> bool:
    """Tell whether the release surely has no server argument of this name."""
    asked = context.claimed or context.beyond_claims
    if context.reader is None or not asked:
        return False
    # Asking for single names: to describe all five hundred takes as long as all other checks.
    known = (context.facts.resolve(f"{CLASS}.{n}") for n in (ALWAYS, name))
    return [isinstance(symbol, Missing) for symbol in known] == [False, True]


def nearest_server_arg(context: Context, name: str) -> str | None:
    """Return the question whether another argument was meant, or None."""
    return did_you_mean(name, context.facts.members(CLASS))

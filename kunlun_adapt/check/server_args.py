"""Which server arguments a release has, where its files say so in one place."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from kunlun_adapt.check.context import Context
from kunlun_adapt.documents import ServerArg, in_range

CLASS = "sglang.srt.server_args.ServerArgs"
ALWAYS = "model_path"
"""The one argument that every server needs: a class that does not list it is put together elsewhere
(0.5.23 assembles it from the classes in `arg_groups/fields/`)."""

_NAMES: WeakKeyDictionary[Context, frozenset[str] | None] = WeakKeyDictionary()


def server_arg_names(context: Context) -> frozenset[str] | None:
    """Return the names of the release's server arguments, or None where they cannot be known."""
    if context not in _NAMES:
        members = context.facts.members(CLASS) if context.reader is not None else {}
        _NAMES[context] = frozenset(members) if ALWAYS in members else None
    return _NAMES[context]


def unknown_server_arg(context: Context, arg: ServerArg, name: str) -> bool:
    """Tell whether `name`, of which this entry speaks, is surely no argument in this release."""
    asked = context.claimed or context.beyond_claims
    if not asked or not in_range(arg.sglang, context.release):
        return False
    names = server_arg_names(context)
    return names is not None and name not in names

"""KA114: upstream put a parameter before those that the binding maps."""

from __future__ import annotations

from collections.abc import Iterable

from kunlun_adapt.check.context import Context
from kunlun_adapt.check.parameters import ignores_edit, inserted, places
from kunlun_adapt.check.wording import joined
from kunlun_adapt.diagnostics import Finding


def rule(context: Context) -> Iterable[Finding]:
    """Report positional parameters before mapped ones that the binding does not know of."""
    for place in places(context):
        found = inserted(context, place)
        if found is None:
            continue
        was = f"; {found.since} the call does not have it" if found.since else ""
        verb, it = ("stand", "them") if found.names[1:] else ("stands", "it")
        yield place.make(
            "KA114",
            f"{joined(found.names)} {verb} before {found.before!r}, and the binding neither maps "
            f"nor ignores {it}{was}: what a caller passes by position for {found.before!r} would "
            f"land in {found.names[0]!r}",
            ("target",),
            ignores_edit(place),
        )

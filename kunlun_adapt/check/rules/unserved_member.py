"""KA204: a platform member that only raises, and that nothing in the map gives."""

from __future__ import annotations

from collections.abc import Iterable

from kunlun_adapt.check.context import Context
from kunlun_adapt.check.platform_body import left_alone, raising_members, spelled_names
from kunlun_adapt.check.wording import nearest
from kunlun_adapt.diagnostics import Finding
from kunlun_adapt.plan import PLATFORM


def rule(context: Context) -> Iterable[Finding]:
    """Report members that raise NotImplementedError unless the platform gives them."""
    if context.platform_class is None:
        return
    given = spelled_names(context)
    place = context.spelling_at(PLATFORM)
    position = context.document.at(*place, "call") if place else context.document.at("interface")
    for name, symbol in raising_members(context):
        if name not in given and not left_alone(context, name):
            yield Finding.of(
                "KA204",
                f"{name} raises NotImplementedError in sglang {context.release}, and no key of "
                "the map gives it",
                position,
                target=symbol.path,
                upstream=symbol.location,
                suggestion=_suggestion(context, name),
            )


def _suggestion(context: Context, name: str) -> str:
    """Name the key that is nearest in meaning, if one is not spelled in this release."""
    unspelled = [m.key for m in context.members if not m.name]
    near = nearest(name, unspelled, cutoff=70)
    give = f"interface.{near}: add {{method: {name}}}" if near else f"methods: add {name}: …"
    return f"{give}, or left_at_default: add {{member: {name}, why: …}}"

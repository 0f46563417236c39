"""KA101: upstream has no such symbol in this release."""

from __future__ import annotations

from collections.abc import Iterable

from kunlun_adapt.check.context import Context
from kunlun_adapt.check.moves import where_now
from kunlun_adapt.check.targets import UPSTREAM, Lost, lost, nearest
from kunlun_adapt.diagnostics import Finding, Mend


def rule(context: Context) -> Iterable[Finding]:
    """Report bound symbols that do not exist and that no other place clearly has."""
    for found in lost(context):
        if found.code == "KA101":
            use, missing = found.use, found.missing
            yield Finding.of(
                "KA101",
                f"sglang {context.release} has no {use.path}{_why(found)}",
                use.position,
                binding=use.binding,
                target=use.path,
                upstream=nearest(context, missing),
                suggestion=_suggestion(context, found),
            )


def _why(found: Lost) -> str:
    detail = found.missing.detail
    return f": {detail}" if detail else ""


def _suggestion(context: Context, found: Lost) -> Mend | str | None:
    if found.use.path.split(".")[0] != UPSTREAM:
        return "say where it comes from: `provided_by: <shim module>` or `package: <distribution>`"
    return where_now(context, found)

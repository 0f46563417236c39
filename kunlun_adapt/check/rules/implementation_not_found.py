"""KA301: an implementation path that leads nowhere."""

from __future__ import annotations

from collections.abc import Iterable

from kunlun_adapt.check.context import Context
from kunlun_adapt.check.impl_uses import ImplUse, find, impl_uses
from kunlun_adapt.check.implementations import UPSTREAM, NotFound, Unread
from kunlun_adapt.check.targets import uses
from kunlun_adapt.diagnostics import Finding, Severity


def rule(context: Context) -> Iterable[Finding]:
    """Follow every implementation path by reading files; nothing is imported.

    A path into upstream is followed in the release, where that is one to be checked.
    """
    for use in impl_uses(context):
        found = find(context, use.path)
        if isinstance(found, NotFound) and not _said(context, use):
            yield Finding.of(
                "KA301",
                f"{use.path} leads nowhere: {found.message}",
                use.position,
                binding=use.binding,
                suggestion=found.suggestion,
            )
        elif isinstance(found, Unread):
            yield Finding.of(
                "KA301",
                f"{use.path} cannot be checked here: {found.message}",
                use.position,
                binding=use.binding,
                suggestion=found.suggestion,
                severity=Severity.WARNING,
            )


def _said(context: Context, use: ImplUse) -> bool:
    """Tell whether KA101 to KA103 or KA009 say it: of upstream's classes, and of other releases."""
    if use.path.split(".")[0] != UPSTREAM:
        return False
    path = use.path.replace(":", ".")
    named = ((u.binding, u.path) for u in uses(context) if u.key == "class")
    return not (context.claimed or context.beyond_claims) or (use.binding, path) in named

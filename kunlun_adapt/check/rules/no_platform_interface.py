"""KA205: the release has no interface for out-of-tree platforms."""

from __future__ import annotations

from collections.abc import Iterable

from kunlun_adapt.check.context import Context
from kunlun_adapt.diagnostics import Finding


def rule(context: Context) -> Iterable[Finding]:
    """Say once that there is nothing to bind the platform to."""
    missing = context.platform_packages_missing
    if missing:
        yield Finding.of(
            "KA205",
            f"sglang {context.release} has no {' and no '.join(missing)}: it cannot be extended "
            "by an out-of-tree platform",
            context.document.at("sglang"),
            target=missing[0],
            suggestion=f"claim only releases that have {missing[-1]}",
        )

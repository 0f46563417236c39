"""KA103: upstream imports the name from where it is not."""

from __future__ import annotations

from collections.abc import Iterable

from kunlun_adapt.check.context import Context
from kunlun_adapt.check.targets import lost, where_now
from kunlun_adapt.diagnostics import Finding


def rule(context: Context) -> Iterable[Finding]:
    """Report bound names that upstream re-exports from a place that does not have them."""
    for found in lost(context):
        if found.code == "KA103":
            use, missing = found.use, found.missing
            yield Finding.of(
                "KA103",
                f"{use.path} is re-exported in sglang {context.release}, but does not exist: "
                f"{missing.detail}",
                use.position,
                binding=use.binding,
                target=use.path,
                upstream=missing.at,
                suggestion=where_now(context, found),
            )

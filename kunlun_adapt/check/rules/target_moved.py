"""KA102: the symbol lives elsewhere in this release."""

from __future__ import annotations

from collections.abc import Iterable

from kunlun_adapt.check.context import Context
from kunlun_adapt.check.moves import confidence, edit
from kunlun_adapt.check.targets import lost
from kunlun_adapt.diagnostics import Finding


def rule(context: Context) -> Iterable[Finding]:
    """Report bound symbols whose name stands in one other place of the release."""
    for found in lost(context):
        if found.code == "KA102" and found.moved_to is not None:
            use, now = found.use, found.moved_to
            yield Finding.of(
                "KA102",
                f"{use.path} is now {now.path} in sglang {context.release} ({now.why}: "
                f"{confidence(now)})",
                use.position,
                binding=use.binding,
                target=use.path,
                upstream=now.location,
                suggestion=edit(context, use, now.path),
            )

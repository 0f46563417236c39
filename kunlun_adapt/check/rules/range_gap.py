"""KA008: a release inside the map's claim that a binding leaves out without a reason."""

from __future__ import annotations

from collections.abc import Iterable

from kunlun_adapt.check.context import Context
from kunlun_adapt.check.proposed import leave_out
from kunlun_adapt.check.ranges import Ranges, ranged
from kunlun_adapt.diagnostics import Finding, Mend
from kunlun_adapt.documents import in_range
from kunlun_adapt.upstream import Symbol


def rule(context: Context) -> Iterable[Finding]:
    """Report bindings for which neither a range nor an exclusion speaks of the release."""
    if not context.claimed:
        return  # beyond the claims a gap is what is expected
    for group in ranged(context):
        if group.binding is None or group.planned:
            continue  # a key of the interface: KA202 says it; what is planned claims what it can
        ranges = [text for text, _ in group.ranges]
        if not any(in_range(text, context.release) for text in (*ranges, *group.excluded)):
            yield Finding.of(
                "KA008",
                f"sglang {context.release} lies in the map's claim {context.map.sglang!r}, but "
                f"{group.binding} only claims {' | '.join(ranges)}",
                group.position,
                binding=group.binding,
                target=group.targets[-1],
                suggestion=_mend(context, group),
            )


def _mend(context: Context, group: Ranges) -> Mend:
    for target in reversed(group.targets):
        if isinstance(context.facts.resolve(target), Symbol):
            return Mend(f"{target} exists there: widen its range to hold for {context.floor}")
    out = leave_out(context, group.binding)
    return out.saying(f"say why: {out.text}")

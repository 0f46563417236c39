"""KA009: the release lies outside the map's claim."""

from __future__ import annotations

from collections.abc import Iterable

from packaging.version import Version

from kunlun_adapt.check.context import Context
from kunlun_adapt.check.releases import bounds
from kunlun_adapt.diagnostics import Finding


def rule(context: Context) -> Iterable[Finding]:
    """Report a release that the map does not claim, unless it is checked beyond its claims."""
    claim = context.map.sglang
    if context.beyond_claims or context.claimed:
        return
    yield Finding.of(
        "KA009",
        f"sglang {context.release} is not among the releases that the map claims ({claim})"
        f"{_nearest(claim, Version(context.release))}",
        context.document.at("sglang"),
        # Where KA205 says that nothing can be bound, there is nothing to check beyond the claims.
        suggestion=None
        if context.platform_packages_missing
        else f"--beyond-claims checks every binding as if it claimed {context.release}",
    )


def _nearest(claim: str, release: Version) -> str:
    limits = bounds(claim)
    if not limits:
        return ""
    near = min(limits, key=lambda v: (v.release[:2] != release.release[:2], _away(v, release)))
    side = "before" if release < near else "at or after"
    return f"; it lies {side} the nearest bound, {near}"


def _away(one: Version, other: Version) -> tuple[int, ...]:
    width = max(len(one.release), len(other.release))
    padded = [v.release + (0,) * (width - len(v.release)) for v in (one, other)]
    return tuple(abs(a - b) for a, b in zip(*padded, strict=True))

"""KA501: the stack has no row for the release."""

from __future__ import annotations

from collections.abc import Iterable

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from kunlun_adapt.check.context import Context
from kunlun_adapt.diagnostics import Finding


def rule(context: Context) -> Iterable[Finding]:
    """Report a release for which no combination of versions was verified together."""
    rows = [row.get("sglang", "") for row in context.map.stack]
    if any(_covers(text, context.release) for text in rows):
        return
    known = f"; it has {', '.join(text for text in rows if text)}" if any(rows) else ""
    yield Finding.of(
        "KA501",
        f"the stack has no row for sglang {context.release}{known}",
        context.document.key_at("stack") if rows else context.document.at("sglang"),
        suggestion=f'stack: add {{sglang: "{context.release}", torch: "…", verified: …}} once it '
        "was verified",
    )


def _covers(text: str, release: str) -> bool:
    """Tell whether a row's version, or range of versions, holds for the release."""
    try:
        return Version(text) == Version(release)
    except InvalidVersion:
        pass
    try:
        return bool(text.strip()) and SpecifierSet(text).contains(release, prereleases=True)
    except InvalidSpecifier:
        return False

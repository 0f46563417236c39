"""KA301: an implementation path that leads nowhere."""

from __future__ import annotations

from collections.abc import Iterable

from kunlun_adapt.check.context import Context
from kunlun_adapt.check.impl_uses import absent_package, find, impl_uses
from kunlun_adapt.check.implementations import NotFound
from kunlun_adapt.diagnostics import Finding, Severity


def rule(context: Context) -> Iterable[Finding]:
    """Follow every implementation path by reading files; nothing is imported."""
    for use in impl_uses(context):
        found = find(context, use.path)
        if isinstance(found, NotFound):
            yield Finding.of(
                "KA301",
                f"{use.path} leads nowhere: {found.message}",
                use.position,
                binding=use.binding,
                suggestion=found.suggestion,
            )
        elif found is None and (package := absent_package(context, use.path)):
            yield Finding.of(
                "KA301",
                f"{use.path} cannot be checked here: the package {package} is not installed",
                use.position,
                binding=use.binding,
                suggestion=f"install {package}, or check where it is installed",
                severity=Severity.WARNING,
            )

"""KA302: an implementation that cannot take the call that it will get."""

from __future__ import annotations

from collections.abc import Iterable

from kunlun_adapt.check.context import Context
from kunlun_adapt.check.impl_calls import call_text, faults, wanted
from kunlun_adapt.check.impl_uses import find, impl_uses
from kunlun_adapt.check.implementations import Implementation
from kunlun_adapt.diagnostics import Finding


def rule(context: Context) -> Iterable[Finding]:
    """Compare what each implementation takes with what the generated code passes.

    KA207 speaks of the methods of the platform.
    """
    for use in impl_uses(context):
        if use.positional is None or use.member is not None:
            continue
        found = find(context, use.path)
        if not isinstance(found, Implementation) or found.signature is None:
            continue
        said = list(faults(use, found.signature))
        if said:
            name = use.path.partition(":")[2]
            yield Finding.of(
                "KA302",
                f"{name}{found.signature.text()} ({found.location}) cannot be called as "
                f"{name}({call_text(use)}): {'; '.join(said)}",
                use.position,
                binding=use.binding,
                suggestion=f"write `def {name}({wanted(use)}): …`",
            )

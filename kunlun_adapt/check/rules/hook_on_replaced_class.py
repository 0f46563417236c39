"""KA402: a hook on a member of a class that another binding replaces."""

from __future__ import annotations

from collections.abc import Iterable

from kunlun_adapt.check.context import Context
from kunlun_adapt.check.patches import Patch, decide, decided, meet, patches
from kunlun_adapt.diagnostics import Finding


def rule(context: Context) -> Iterable[Finding]:
    """Report hooks that land on a class of ours instead of the one that they name."""
    for plan in context.plans:
        listed = list(patches(plan))
        replaced = [p for p in listed if p.type in ("replace", "set") and p.symbol.kind == "class"]
        for whole in replaced:
            for patch in listed:
                inside = patch.definition.startswith(f"{whole.definition}.")
                if not inside or patch.hook is None or not meet(whole, patch):
                    continue
                if not decided(context, whole, patch):
                    yield _report(whole, patch)


def _report(whole: Patch, patch: Patch) -> Finding:
    name = whole.definition.rpartition(".")[2]
    return Finding.of(
        "KA402",
        f"{patch.id} hooks {patch.target}, and {whole.id} puts ours in the place of "
        f"{name}: classes go in first, so the hook lands on ours",
        patch.position,
        binding=patch.id,
        target=patch.target,
        upstream=patch.symbol.location,
        suggestion=f"move it into the class of {whole.id}, or record what was decided in "
        f"{decide(whole, patch)}",
    )

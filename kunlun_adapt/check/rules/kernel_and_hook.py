"""KA405: a kernel and a hook on one symbol."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kunlun_adapt.check.context import Context
from kunlun_adapt.check.patches import (
    WRAPPERS,
    Patch,
    both_names,
    decide,
    decided,
    patches,
    shared_targets,
)
from kunlun_adapt.diagnostics import Finding
from kunlun_adapt.plan import Plan

FORWARDS = "forward_"
"""How upstream names a layer's forwards for single devices; `forward` itself chooses among them."""


def rule(context: Context) -> Iterable[Finding]:
    """Report definitions that an operator and a hook change, unless a decision is recorded."""
    for plan in context.plans:
        for one, other in shared_targets(plan):
            kernel, hook = (one, other) if one.hook is None else (other, one)
            differ = kernel.hook is None and hook.hook is not None
            if differ and not decided(context, kernel, hook):
                yield _report(kernel, hook)
        for kernel, hook in _unreached(plan):
            if not decided(context, kernel, hook):
                yield _bypassed(kernel, hook)


def _unreached(plan: Plan) -> Iterator[tuple[Patch, Patch]]:
    """Yield the hooks on a forward of a class for which an operator registers its own."""
    listed = list(patches(plan))
    layers = [patch for patch in listed if patch.type == "oot_forward"]
    for hook in (patch for patch in listed if patch.hook is not None):
        owner, _, leaf = hook.definition.rpartition(".")
        for kernel in layers:
            if kernel.definition == owner and leaf.startswith(FORWARDS):
                yield kernel, hook


def _bypassed(kernel: Patch, hook: Patch) -> Finding:
    return Finding.of(
        "KA405",
        f"{hook.id} ({hook.type}) hooks {hook.target}, and {kernel.id} ({kernel.type}) registers "
        "a forward for its class, which upstream calls instead: the hook is not reached",
        hook.position,
        binding=hook.id,
        target=hook.target,
        upstream=hook.symbol.location,
        suggestion=f"drop the hook, or record what was decided in {decide(kernel, hook)}",
    )


def _report(kernel: Patch, hook: Patch) -> Finding:
    outcome = "the hook wraps our kernel" if hook.type in WRAPPERS else "the hook hides the kernel"
    return Finding.of(
        "KA405",
        f"{hook.id} ({hook.type}) hooks {hook.target}{both_names(kernel, hook)}, which "
        f"{kernel.id} ({kernel.type}) binds to an operator; kernels go in first, so {outcome}",
        hook.position,
        binding=hook.id,
        target=hook.target,
        upstream=hook.symbol.location,
        suggestion=f"drop one of them, or record what was decided in {decide(kernel, hook)}",
    )

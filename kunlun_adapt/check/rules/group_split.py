"""KA404: a hook on what only a replaced function of the same group calls."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from kunlun_adapt.check.bodies import called_names, function
from kunlun_adapt.check.context import Context
from kunlun_adapt.check.patches import Patch, decide, decided, meet, patches
from kunlun_adapt.diagnostics import Finding
from kunlun_adapt.plan import WRAPPING


def rule(context: Context) -> Iterable[Finding]:
    """Report hooks that a replaced caller in the same class or module no longer reaches.

    Upstream's body is read: what ours calls in its place is not known here. What is planned is
    left out, since nobody knows yet what it will call.
    """
    if context.reader is None:
        return
    for plan in context.plans:
        groups: dict[str, list[Patch]] = defaultdict(list)
        for patch in patches(plan):
            bound = patch.hook is not None and patch.hook.binding.status == "bound"
            if bound and patch.type in WRAPPING:
                groups[patch.symbol.resolved.rpartition(".")[0]].append(patch)
        for group in groups.values():
            for caller in group if len(group) > 1 else ():
                for patch in _bypassed(context, caller, group):
                    if not _watched(caller, patch) and not decided(context, caller, patch):
                        yield _report(caller, patch)


def _bypassed(context: Context, caller: Patch, group: list[Patch]) -> Iterator[Patch]:
    """Yield the hooks of a group on what the original of a replaced one calls."""
    node = function(context, caller.symbol) if caller.type == "replace" else None
    called = called_names(node) if node is not None else set()
    for patch in group:
        same = patch.definition == caller.definition
        if patch.definition.rpartition(".")[2] in called and not same and meet(caller, patch):
            yield patch


def _watched(caller: Patch, patch: Patch) -> bool:
    hook = patch.hook
    watch = [*hook.hook.watch, *hook.at.watch] if hook is not None else []
    return caller.target in watch or caller.symbol.resolved in watch


def _report(caller: Patch, patch: Patch) -> Finding:
    return Finding.of(
        "KA404",
        f"{patch.id} hooks {patch.target}, which {caller.symbol.qualname} calls; {caller.id} "
        "replaces that caller, so the hook runs from there only if ours calls it too",
        patch.position,
        binding=patch.id,
        target=patch.target,
        upstream=caller.symbol.location,
        suggestion=f"`watch: [{caller.target}]` where ours calls it, or drop {patch.id}, or record "
        f"what was decided in {decide(caller, patch)}",
    )

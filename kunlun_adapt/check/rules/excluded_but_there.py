"""KA121: a binding leaves a release out although its target stands elsewhere there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kunlun_adapt.check.context import Context
from kunlun_adapt.check.usage import usage_findings
from kunlun_adapt.check.use_sites import UseSites, is_test
from kunlun_adapt.diagnostics import Finding
from kunlun_adapt.documents import in_range
from kunlun_adapt.documents.platform_map import Exclusion
from kunlun_adapt.plan import Binding
from kunlun_adapt.upstream import Missing

if TYPE_CHECKING:
    from kunlun_adapt.upstream import Definition

COMMON = frozenset(
    {
        *("forward", "apply", "execute", "run", "main", "create", "init", "load", "get", "set"),
        *("update", "build", "create_weights", "weight_loader", "from_config", "get_name"),
        *("process_weights_after_loading", "__init__", "__call__"),
    }
)
"""Names that many definitions carry, of which none says where another went."""

MANY = 3
"""A body or name in more places than these is no one's in particular."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A binding that does not hold in the release, and its target's path."""

    binding: Binding
    target: str


def rule(context: Context) -> Iterable[Finding]:
    """Report exclusions of releases that have the target elsewhere."""
    return (finding for finding in usage_findings(context) if finding.code == "KA121")


def search(sites: UseSites) -> Iterator[Finding]:
    """Look for the name, and the body that the lock last saw, of each target that is left out."""
    for left in left_out(sites.context):
        if not isinstance(sites.context.facts.resolve(left.target), Missing):
            continue
        where, why = _elsewhere(sites, left.target)
        if where is None:
            continue
        yield Finding.of(
            "KA121",
            f"{left.binding.id} leaves out sglang {sites.context.release}, where {where.path} has "
            f"{why}",
            left.binding.position,
            binding=left.binding.id,
            target=left.target,
            upstream=where.location,
            suggestion=f'{{sglang: ">={sites.context.release}", target: {where.path}}}',
        )


def left_out(context: Context) -> Iterator[LeftOut]:
    """Yield what an exclusion leaves out, and active bindings whose ranges leave the release out.

    A planned binding that claims little is not looked at: following it is still to come.
    """
    excluded = {
        binding.id: binding
        for binding in (context.plans[0].bindings if context.plans else ())
        if binding.status == "excluded"
    }
    for entry in context.catalog.hooks:
        hook = entry.hook
        binding = excluded.get(hook.id)
        if binding is not None and (hook.status == "active" or _stated(context, hook.excluded)):
            yield LeftOut(binding, binding.target)
    for recipe in context.operators:
        for bind in recipe.model.binds:
            name = bind.id or bind.target.rpartition(".")[2]
            binding = excluded.get(f"{recipe.model.name}/{name}")
            active = recipe.model.status == bind.status == "active"
            if binding is not None and (active or _stated(context, bind.excluded)):
                yield LeftOut(binding, bind.target)


def _stated(context: Context, exclusions: list[Exclusion]) -> bool:
    return any(in_range(exclusion.sglang, context.release) for exclusion in exclusions)


def _elsewhere(sites: UseSites, target: str) -> tuple[Definition | None, str]:
    """The one place that has the target's body or its name, and which of the two."""
    for fingerprint in locked_fingerprints(sites.context, target):
        same = [d for d in sites.index.by_fingerprint(fingerprint) if not is_test(d.module)]
        if 0 < len(same) <= MANY:
            return same[0], "the body that the lock knows"
    owner, _, leaf = target.rpartition(".")
    if leaf in COMMON or leaf.startswith("__"):
        return None, ""
    found = [d for d in sites.index.definitions(leaf) if not is_test(d.module)]
    klass = owner.rpartition(".")[2]
    if klass[:1].isupper():
        found = [d for d in found if d.qualname == f"{klass}.{leaf}"]
    else:
        found = [d for d in found if "." not in d.qualname]
    return (found[0], "the same name") if 0 < len(found) <= MANY else (None, "")


def locked_fingerprints(context: Context, target: str) -> list[str]:
    """The bodies that the lock saw behind a target, the newest first."""
    lock = context.lock
    if lock is None:
        return []
    symbols = [lock.symbol(release, target) for release in reversed(lock.releases)]
    return list(dict.fromkeys(s.fingerprint for s in symbols if s and s.fingerprint))

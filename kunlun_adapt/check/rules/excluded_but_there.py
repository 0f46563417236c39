"""KA121: a binding leaves a release out although its target stands there, or elsewhere there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from kunlun_adapt.check.context import Context
from kunlun_adapt.check.moves import edit
from kunlun_adapt.check.proposed import leave_out
from kunlun_adapt.check.targets import Use
from kunlun_adapt.check.usage import usage_findings
from kunlun_adapt.check.use_sites import UseSites, is_test
from kunlun_adapt.diagnostics import Finding, Mend, Position
from kunlun_adapt.documents import Document, in_range
from kunlun_adapt.documents.platform_map import Exclusion
from kunlun_adapt.plan import Binding, bind_groups
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
    """A binding that does not hold in the release, and the entry that names its target."""

    binding: Binding
    target: str
    position: Position
    entry: Mapping[str, Any]
    stated: bool
    """Whether `excluded` says so, not only the ranges."""

    silent: bool
    """Whether it is planned, and only its ranges leave the release out."""

    document: Document[Any]
    path: tuple[str | int, ...]


def rule(context: Context) -> Iterable[Finding]:
    """Report exclusions of releases that have the target elsewhere."""
    found = [finding for finding in usage_findings(context) if finding.code == "KA121"]
    known = {(left.binding.id, left.target): left for left in left_out(context)} if found else {}
    for finding in found:
        left = known.get((finding.binding or "", finding.target or ""))
        if left is not None and finding.suggestion is not None:
            # The lock keeps where it is; the edit depends on more than the lock's digest knows.
            tip = _suggestion(context, left, finding.suggestion)
            yield replace(finding, position=left.position, suggestion=tip.text, mend=tip)


def search(sites: UseSites) -> Iterator[Finding]:
    """Look for the name, and the body that the lock last saw, of each target that is left out.

    What a finding suggests is the bare path: the rule makes the edit of it.
    """
    release = sites.context.release
    told = set()
    for left in left_out(sites.context):
        found = sites.context.facts.resolve(left.target)
        if not isinstance(found, Missing):
            # An active binding without a reason is KA008's; a stated reason may be any.
            if left.silent and sites.context.claimed and left.binding.id not in told:
                told.add(left.binding.id)
                yield Finding.of(
                    "KA121",
                    f"{left.binding.id} leaves out sglang {release} and does not say why; "
                    f"{left.target} is there",
                    left.position,
                    binding=left.binding.id,
                    target=left.target,
                    upstream=found.location,
                    suggestion=left.target,
                )
            continue
        if left.silent:
            continue
        where, why = _elsewhere(sites, left.target)
        if where is None:
            continue
        yield Finding.of(
            "KA121",
            f"{left.binding.id} leaves out sglang {release}, where {where.path} has {why}",
            left.position,
            binding=left.binding.id,
            target=left.target,
            upstream=where.location,
            suggestion=where.path,
        )


def _suggestion(context: Context, left: LeftOut, path: str) -> Mend:
    if path == left.target:
        why = leave_out(context, left.binding.id)
        return Mend(f"let its range hold for {context.release} too, or say why not: {why.text}")
    missing = context.facts.resolve(left.target)
    entry = {k: v for k, v in left.entry.items() if k != "excluded"}
    place = (left.document, left.path)
    use = Use(left.target, missing, left.position, left.binding.id, "target", entry, "", *place)
    found = edit(context, use, path)
    if not left.stated:
        return found
    # Taking an exclusion back is for a person: it was made for a reason.
    return Mend(f"{found.text}; and drop the exclusion")


def left_out(context: Context) -> Iterator[LeftOut]:
    """Yield each binding that is left out, by an exclusion or by its ranges alone."""
    excluded = {
        binding.id: binding
        for binding in (context.plans[0].bindings if context.plans else ())
        if binding.status == "excluded"
    }
    for entry in context.catalog.hooks:
        hook = entry.hook
        binding = excluded.get(hook.id)
        stated = _stated(context, hook.excluded)
        if binding is not None:
            index = [at.target for at in hook.at].index(binding.target)
            place = entry.document.at(*entry.path, "at", index, "target")
            said = hook.at[index].model_dump(exclude_unset=True)
            path = (*entry.path, "at", index)
            silent = hook.status == "planned" and not stated
            owner = entry.document
            yield LeftOut(binding, binding.target, place, said, stated, silent, owner, path)
    for recipe in context.operators:
        model = recipe.model
        for id, indexes in bind_groups(model).items():
            binding = excluded.get(id)
            if binding is None:
                continue
            # Of several places the one that is nearest to the release speaks for all.
            i = next(i for i in indexes if model.binds[i].target == binding.target)
            bind = model.binds[i]
            stated = any(_stated(context, model.binds[j].excluded) for j in indexes)
            silent = "planned" in (model.status, bind.status) and not stated
            place = recipe.at("binds", i, "target")
            said = bind.model_dump(exclude_unset=True)
            yield LeftOut(binding, bind.target, place, said, stated, silent, recipe, ("binds", i))


def _stated(context: Context, exclusions: list[Exclusion]) -> bool:
    return any(in_range(exclusion.sglang, context.release) for exclusion in exclusions)


def _elsewhere(sites: UseSites, target: str) -> tuple[Definition | None, str]:
    """The nearest place that has the target's body or its name, and which of the two."""
    for fingerprint in locked_fingerprints(sites.context, target):
        same = [d for d in sites.index.by_fingerprint(fingerprint) if not is_test(d.module)]
        if 0 < len(same) <= MANY:
            return _nearest(same, target), "the body that the lock knows"
    owner, _, leaf = target.rpartition(".")
    if leaf in COMMON or leaf.startswith("__"):
        return None, ""
    found = [d for d in sites.index.definitions(leaf) if not is_test(d.module)]
    klass = owner.rpartition(".")[2]
    if klass[:1].isupper():
        found = [d for d in found if d.qualname == f"{klass}.{leaf}"]
    else:
        found = [d for d in found if "." not in d.qualname]
    return (_nearest(found, target), "the same name") if 0 < len(found) <= MANY else (None, "")


def _nearest(found: list[Definition], target: str) -> Definition:
    """Of several places the one whose path has most in common with the target's."""
    owner = target.rpartition(".")[0].split(".")

    def shared(place: Definition) -> int:
        pairs = zip(place.path.split("."), owner, strict=False)
        return next((i for i, (one, other) in enumerate(pairs) if one != other), len(owner))

    return max(found, key=shared)


def locked_fingerprints(context: Context, target: str) -> list[str]:
    """The bodies that the lock saw behind a target, the newest first."""
    lock = context.lock
    if lock is None:
        return []
    symbols = [lock.symbol(release, target) for release in reversed(lock.releases)]
    return list(dict.fromkeys(s.fingerprint for s in symbols if s and s.fingerprint))

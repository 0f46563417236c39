"""KA121: a binding leaves a release out although its target stands there, or elsewhere there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from kunlun_adapt.check.context import Context
from kunlun_adapt.check.moves import edit
from kunlun_adapt.check.proposed import leave_out
from kunlun_adapt.check.targets import Use
from kunlun_adapt.check.usage import usage_findings, usage_now
from kunlun_adapt.check.use_sites import UseSites, is_test
from kunlun_adapt.diagnostics import Finding, Mend, Position
from kunlun_adapt.documents import Document, in_range
from kunlun_adapt.documents.platform_map import Exclusion
from kunlun_adapt.plan import Binding, bind_groups
from kunlun_adapt.upstream import Location, Missing

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
class Place:
    """A definition: its path and where it stands."""

    path: str
    location: Location

    @classmethod
    def parse(cls, text: str) -> Place:
        """Read what the lock holds of it; raises ValueError where that is none."""
        path, _, at = text.partition(" ")
        return cls(path, Location.parse(at))


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
    known = {(left.binding.id, left.target): left for left in left_out(context)}
    found = {_key(f): f for f in usage_findings(context) if f.code == "KA121"}
    # A body says more than a name.
    found.update((key, body) for key, left in known.items() if (body := _body(context, left)))
    for key, finding in found.items():
        left = known.get(key)
        if left is not None and finding.suggestion is not None:
            # The lock keeps where it is; the edit depends on more than the lock's digest knows.
            tip = _suggestion(context, left, finding.suggestion)
            yield replace(finding, position=left.position, suggestion=tip.text, mend=tip)


def _key(finding: Finding) -> tuple[str, str]:
    return finding.binding or "", finding.target or ""


def _body(context: Context, left: LeftOut) -> Finding | None:
    """Look for the body that the lock last saw of a target that is left out and not there."""
    wanted = _wanted(context, left)
    held = _held_bodies(context, left) if wanted else {}
    for fingerprint in wanted:
        places = held[fingerprint] if fingerprint in held else _with_body(context, fingerprint)
        if places:
            why = "the body that the lock knows"
            return _told(context.release, left, _nearest(places, left.target), why)
    return None


def bodies(context: Context) -> dict[str, dict[str, list[str]]]:
    """Return where the release has the bodies that are looked for, by binding and fingerprint.

    That a body is looked for depends on other releases; where it is here does not.
    """
    return {
        left.binding.id: {
            fingerprint: [f"{place.path} {place.location}" for place in places]
            for fingerprint in sorted(wanted)
            for places in [_with_body(context, fingerprint)]
        }
        for left in left_out(context)
        if (wanted := _wanted(context, left))
    }


def _wanted(context: Context, left: LeftOut) -> list[str]:
    if context.reader is None or left.silent:
        return []
    gone = isinstance(context.facts.resolve(left.target), Missing)
    return locked_fingerprints(context, left.target) if gone else []


def _held_bodies(context: Context, left: LeftOut) -> dict[str, list[Place]]:
    """What the row of the release holds; a body that was locked since it was made is not in it."""
    try:
        held = usage_now(context)["bindings"][left.binding.id].get("bodies", {})
        return {print_: [Place.parse(text) for text in texts] for print_, texts in held.items()}
    except (KeyError, TypeError, ValueError, AttributeError):
        return {}  # not what we write: it is looked for anew


def _with_body(context: Context, fingerprint: str) -> list[Place]:
    """The definitions with a body, none where it is no one's; later runs remember the answer."""
    reader = context.reader
    assert reader is not None, "a body is looked for in a release"

    def ask() -> list[list[str]]:
        found = reader.index.by_fingerprint(fingerprint)
        return [[d.module, d.path, str(d.location)] for d in found]

    kept = reader.recall("body", fingerprint, ask)
    same = [Place(path, Location.parse(at)) for module, path, at in kept if not is_test(module)]
    return same if len(same) <= MANY else []


def search(sites: UseSites) -> Iterator[Finding]:
    """Look for the name of each target that is left out.

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
        where = _named(sites, left.target)
        if where is not None:
            yield _told(release, left, where, "the same name")


def _told(release: str, left: LeftOut, where: Place, why: str) -> Finding:
    return Finding.of(
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
        return Mend(f"let its range hold for {context.floor} too, or say why not: {why.text}")
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


def _named(sites: UseSites, target: str) -> Place | None:
    """The nearest place that has the target's name."""
    owner, _, leaf = target.rpartition(".")
    if leaf in COMMON or leaf.startswith("__"):
        return None
    found = [d for d in sites.index.definitions(leaf) if not is_test(d.module)]
    klass = owner.rpartition(".")[2]
    if klass[:1].isupper():
        found = [d for d in found if d.qualname == f"{klass}.{leaf}"]
    else:
        found = [d for d in found if "." not in d.qualname]
    places = [Place(d.path, d.location) for d in found]
    return _nearest(places, target) if 0 < len(places) <= MANY else None


def _nearest(found: list[Place], target: str) -> Place:
    """Of several places the one whose path has most in common with the target's."""
    owner = target.rpartition(".")[0].split(".")

    def shared(place: Place) -> int:
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

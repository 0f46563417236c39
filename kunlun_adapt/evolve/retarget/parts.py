"""What each entry needs in the new release: the findings' edits, with what speaks for them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kunlun_adapt.check import Context
from kunlun_adapt.check.alike import class_of
from kunlun_adapt.check.moves import edit
from kunlun_adapt.check.proposed import leave_out
from kunlun_adapt.check.taken_for import CALLED
from kunlun_adapt.check.targets import Lost, lost, uses
from kunlun_adapt.diagnostics import EntryChange, Finding, ItemChange, Mend, Severity
from kunlun_adapt.evolve.retarget.company import Users, elsewhere
from kunlun_adapt.evolve.retarget.evidence import head_of
from kunlun_adapt.evolve.retarget.follow import Followed, Step, follow
from kunlun_adapt.evolve.retarget.holding import Entry, Place
from kunlun_adapt.evolve.retarget.passing import Asked, Calls
from kunlun_adapt.evolve.retarget.rates import Class, Rate, rate_of
from kunlun_adapt.plan import KernelBinding, forward_called
from kunlun_adapt.upstream import Location, Symbol
from kunlun_adapt.upstream.following import FollowingResolver

OF_LOST = ("KA101", "KA102", "KA103")
"""The codes of symbols that are not there: these are followed, not suggested for."""
OF_THE_LOCK = ("KA007", "KA008", "KA009", "KA011", "KA012", "KA106", "KA107", "KA116", "KA501")
"""What the claims, the lock and the stack say: that follows from the edits, and mends nothing."""

SHOWN = 4


@dataclass(slots=True)
class Part:
    """One thing that an entry needs: its values, how sure they are, and what speaks for them."""

    sure: Class
    code: str
    says: str
    values: Mapping[str, Any] = field(default_factory=dict)
    item: ItemChange | None = None
    evidence: tuple[str, ...] = ()
    rates: tuple[Rate, ...] = ()
    upstream: str | None = None
    forms: tuple[Mapping[str, Any], ...] = ()
    """The values that it has on the way, where it moved more than once."""
    repair: tuple[str, ...] = ()
    """The copies that the hook has to repair as well."""


def merged(parts: Iterable[Part]) -> tuple[dict[str, Any], str | None]:
    """Return the values of all parts together, and the first key on which they differ."""
    values: dict[str, Any] = {}
    moved = [p for p in parts if "target" in p.values]
    for part in [*moved, *(p for p in parts if p not in moved)]:
        for key, value in part.values.items():
            if key in values and values[key] != value:
                return values, key
            values[key] = value
    return values, None


def place_of_change(change: EntryChange | ItemChange) -> Place:
    return change.file, change.document, change.path


def of_lost(
    context: Context, ways: Mapping[Place, Sequence[FollowingResolver]]
) -> Iterator[tuple[Place, Part]]:
    """Yield what became of each symbol that is lost, where its entry is one of those to carry."""
    taken = {u.symbol.resolved for u in uses(context) if isinstance(u.symbol, Symbol)}
    found = lost(context)
    users = Users(_called(item.use.path) for item in found)
    for item in found:
        use = item.use
        if use.document is None:
            continue
        place = (use.document.raw.file, use.document.raw.index, use.place)
        way = ways.get(place, ())
        if len(way) > 1:
            yield place, _followed(context, item, follow(use.path, way, users, taken), way[0])
        elif way:
            says = f"{use.path} is not there, and no known release has it to follow it from"
            yield place, Part("open", item.code, says)


def _called(path: str) -> str:
    """Return the name by which others import what a path leads to: its class, if it has one."""
    return class_of(path) or path.rpartition(".")[2]


def _followed(context: Context, item: Lost, found: Followed, start: FollowingResolver) -> Part:
    use, release = item.use, context.release
    evidence = tuple(_told(step) for step in found.steps)
    if found.path is None:
        near = [f"{c.symbol.path}: {c.evidence.key}" for c in found.near]
        says = f"{use.path} is gone from {found.gone} on"
        if near:
            return Part("open", item.code, f"{says}; what comes near", evidence=tuple(near))
        return Part("likely", item.code, says, item=_left_out(context, item, found))
    mend = edit(context, use, found.path)
    change = mend.changes[0] if mend.changes else None
    if not isinstance(change, EntryChange):
        return Part("open", item.code, f"{use.path} is now {found.path}", evidence=evidence)
    rates = tuple(step.rate for step in found.steps)
    sure: Class = "certain" if all(rate.is_certain for rate in rates) else "likely"
    says = f"{use.path} is now {found.path} in sglang {release}"
    other = item.moved_to.path if item.moved_to is not None else None
    if other is not None and _definition(context, other) != _definition(context, found.path):
        sure, evidence = "likely", (*evidence, f"validate takes it for {other}")
    now = context.facts.resolve(found.path)
    if isinstance(now, Symbol) and now.inherited_from is not None:
        sure = "likely" if sure == "certain" else sure
        evidence = (*evidence, f"it is only inherited there, from {now.inherited_from}")
    # What an operator's place or an added member has to do with a class is not all of it.
    whole = use.key == "target" and (CALLED in use.sorts or not use.sorts)
    names = _other_members(context, found.path, start, use.path) if whole else []
    if names:
        sure = "likely" if sure == "certain" else sure
        more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
        said = f"not as in sglang {start.version}: {', '.join(names[:SHOWN])}{more}"
        evidence = (*evidence, said)
    if mend.asks:
        sure, evidence = "open", (*evidence, *mend.asks)
    where = str(found.location) if found.location else None
    paths = [step.path for step in found.steps[:-1]]
    forms = tuple({use.key: path + use.tail} for path in paths if use.key in ("target", "call"))
    return Part(sure, item.code, says, change.values, None, evidence, rates, where, forms)


def _other_members(context: Context, path: str, start: FollowingResolver, before: str) -> list[str]:
    """Return what a class has otherwise than it had; nothing of what is no class."""
    new, now = context.reader, context.facts.resolve(path)
    if not isinstance(new, FollowingResolver) or not isinstance(now, Symbol):
        return []
    if now.kind != "class":
        return []

    def members(reader: FollowingResolver, path: str) -> dict[str, object]:
        whole = {**reader.members(path), "__init__": reader.resolve(path)}
        found = {n: (s.kind, s.signature) for n, s in whole.items() if isinstance(s, Symbol)}
        return {"its bases or decorators": head_of(reader, path), **found}

    mine, theirs = members(start, before), members(new, path)
    return [name for name in {**mine, **theirs} if mine.get(name) != theirs.get(name)]


def _left_out(context: Context, item: Lost, found: Followed) -> ItemChange | None:
    """Return the exclusion of what is gone, with the release from which on it is."""
    mend = leave_out(context, item.use.binding)
    change = mend.changes[0] if mend.changes else None
    if not isinstance(change, ItemChange):
        return None
    said = {"sglang": f">={found.gone}", "why": f"upstream has no {item.use.path} from there on"}
    return ItemChange(change.file, change.document, change.path, said)


def _definition(context: Context, path: str) -> str:
    found = context.facts.resolve(path)
    return found.resolved if isinstance(found, Symbol) else path


def _told(step: Step) -> str:
    return (
        f"{step.before} to {step.after}: {step.source} to {step.path} "
        f"({step.evidence.key}: {step.rate.text})"
    )


def of_findings(
    context: Context,
    findings: Iterable[Finding],
    entries: Mapping[Place, Entry],
    ways: Mapping[Place, Sequence[FollowingResolver]],
) -> tuple[list[tuple[Place, Part]], list[Finding]]:
    """Return the parts that the findings' own edits make, and the findings without any."""
    followed = {
        item.use.position
        for item in lost(context)
        if item.use.document is not None
        and (item.use.document.raw.file, item.use.document.raw.index, item.use.place) in entries
    }
    made: list[tuple[Place, Part]] = []
    without: list[Finding] = []
    for finding in findings:
        if finding.code in OF_THE_LOCK or finding.severity is Severity.INFO:
            continue
        if finding.code in OF_LOST:
            # A class that a factory hands out, a repair: what has no range cannot be split.
            if finding.position not in followed:
                without.append(finding)
            continue
        mend = finding.mend
        change = mend.changes[0] if mend is not None and mend.changes else None
        if mend is None or not isinstance(change, EntryChange):
            without.append(finding)
            continue
        place = place_of_change(change)
        entry = entries.get(place)
        # Whether a member is to be bound on the class that it comes from is for a person to say:
        # where it went to a base, the one that has it now is proposed.
        if entry is None or (mend.kind == "inherited" and len(ways[place]) < 2):
            without.append(finding)
            continue
        sure, rates, evidence = _sureness(context, mend, finding)
        if mend.kind == "defined":
            doubts = tuple(_doubts(context, entry, str(change.values["target"]), ways[place]))
            sure, evidence = ("likely", (*evidence, *doubts)) if doubts else (sure, evidence)
        where = str(finding.upstream) if finding.upstream else None
        beside = mend.changes[1] if len(mend.changes) > 1 else None
        item = beside if isinstance(beside, ItemChange) else None
        part = Part(
            sure, finding.code, finding.message, change.values, item, evidence, rates, where
        )
        made.append((place, part))
    return made, without


def _sureness(
    context: Context, mend: Mend, finding: Finding
) -> tuple[Class, tuple[Rate, ...], tuple[str, ...]]:
    """Return how sure an edit is by its kind, before anything else is looked at."""
    if mend.asks:
        return "open", (), mend.asks
    if mend.kind == "defined":
        return "certain", (), ("upstream imports it from there: a fact, no guess",)
    if mend.kind == "parameters":
        return "certain", (), ()
    if mend.kind == "spelled" and not _says_what_it_was(context, finding):
        # A like name alone tells nothing: another member may be about another thing.
        return "open", (), ("only the names are alike",)
    if mend.kind in ("process", "spelled"):
        rate = rate_of(mend.kind, "all")
        return ("certain" if rate.is_certain else "likely"), (rate,), (rate.text,)
    return "likely", (), ()


def _doubts(
    context: Context, entry: Entry, target: str, way: Sequence[FollowingResolver]
) -> Iterator[str]:
    """Yield why what a name leads to now need not be what it stood for."""
    path = str(entry.stated.get("target"))
    there, was = way[0].definition(target), way[0].definition(path)
    if len(way) > 1 and there is not None and there != was:
        yield f"{target} was there in sglang {way[0].version} already, beside {path}"
    found = context.facts.resolve(path)
    for other in sorted(elsewhere(found) if isinstance(found, Symbol) else ()):
        yield f"under another guard it is {other}"


def _says_what_it_was(context: Context, finding: Finding) -> bool:
    """Tell whether upstream's platform itself speaks of the lost member beside the new one.

    A field of the capabilities that is called as the key is says as much.
    """
    change = finding.mend.changes[0] if finding.mend is not None else None
    if not isinstance(change, EntryChange) or context.platform_class is None:
        return False
    field = str(change.values.get("field") or "")
    key = str(change.path[1])
    if field and field.rpartition(".")[2] == key.rpartition(".")[2]:
        return True
    lost = (finding.target or "").rpartition(".")[2]
    reader = context.reader
    source = reader.release.read(context.platform_class.location.file) if reader else None
    return bool(lost) and source is not None and lost.encode() in source


def _added(context: Context, entry: Entry, values: Mapping[str, Any]) -> list[Asked]:
    """Return the parameters that an edit ignores and that were not named before."""
    before, item = entry.stated.get("ignores") or {}, entry.item
    new = [name for name in values.get("ignores") or () if name not in before]
    if not new or item is None:
        return []
    target = str(values.get("target") or entry.stated.get("target"))
    symbol = context.facts.resolve(target)
    if isinstance(item, KernelBinding) and item.bind.style == "oot_forward":
        symbol = forward_called(context.facts, target)
    if not isinstance(symbol, Symbol):
        return []
    leaf = symbol.path.rpartition(".")[2]
    return [Asked.of(symbol, name, leaf) for name in new]


def ask_who_passes(
    context: Context,
    made: Iterable[tuple[Place, Part]],
    entries: Mapping[Place, Entry],
    ways: Mapping[Place, Sequence[FollowingResolver]],
) -> None:
    """Look whether upstream's calls pass a parameter, in any release for which the edit may hold.

    Only what nobody passes can be ignored unseen: a call that passes it would be refused.
    """
    added = [
        (place, part, items)
        for place, part in made
        if part.sure != "open" and (items := _added(context, entries[place], part.values))
    ]
    asked: dict[FollowingResolver, set[Asked]] = {}
    for place, _, items in added:
        for release in ways[place][-1:] if len(ways[place]) < 2 else ways[place][1:]:
            asked.setdefault(release, set()).update(items)
    calls = Calls(item for items in asked.values() for item in items)
    found = {release: calls.passed(release.release) for release in asked}
    for _, part, items in added:
        told = []
        for item in items:
            where = next((r for r in asked if item in asked[r] and found[r][item]), None)
            if where is not None:
                told.append(_told_of(item, where.version, found[where][item]))
        if told:
            part.sure = "likely"
        else:
            told = [f"no call passes {', '.join(i.parameter for i in items)}"]
        part.evidence = (*part.evidence, *told)


def _told_of(item: Asked, version: str, places: Sequence[Location]) -> str:
    if not places[0].file:
        return f"{item.parameter} is a name in more files than were looked at"
    more = f" and {len(places) - 1} more" if places[1:] else ""
    return f"{item.parameter} is passed in sglang {version}, {places[0]}{more}"

"""What each entry needs in the new release: the edits of the findings, with what speaks for them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kunlun_adapt.check import Context
from kunlun_adapt.check.moves import edit
from kunlun_adapt.check.targets import Lost, lost, uses
from kunlun_adapt.diagnostics import EntryChange, Finding, ItemChange, Mend, Severity
from kunlun_adapt.evolve.retarget.follow import Followed, Step, follow
from kunlun_adapt.evolve.retarget.holding import Entry, Place
from kunlun_adapt.evolve.retarget.passing import Asked, passed
from kunlun_adapt.evolve.retarget.rates import Class, Rate, rate_of
from kunlun_adapt.plan import HookBinding, KernelBinding
from kunlun_adapt.upstream import Location, Symbol
from kunlun_adapt.upstream.following import FollowingResolver

OF_LOST = ("KA101", "KA102", "KA103")
"""The codes of symbols that are not there: these are followed, not suggested for."""
OF_THE_LOCK = ("KA007", "KA008", "KA009", "KA011", "KA012", "KA106", "KA107", "KA116", "KA501")
"""What the claims, the lock and the stack say: that follows from the edits, and mends nothing."""


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


def place_of_change(change: EntryChange | ItemChange) -> Place:
    return change.file, change.document, change.path


def of_lost(
    context: Context,
    start_of: Mapping[Place, Sequence[FollowingResolver]],
) -> Iterator[tuple[Place, Part]]:
    """Yield what became of each symbol that is lost, where its entry is a ranged one."""
    taken = {u.symbol.resolved for u in uses(context) if isinstance(u.symbol, Symbol)}
    for item in lost(context):
        use = item.use
        if use.document is None:
            continue
        place = (use.document.raw.file, use.document.raw.index, use.place)
        way = start_of.get(place, ())
        if len(way) > 1:
            yield place, _followed(context, item, follow(use.path, way, taken))


def _followed(context: Context, item: Lost, found: Followed) -> Part:
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
    if mend.asks:
        sure, evidence = "open", (*evidence, *mend.asks)
    where = str(found.location) if found.location else None
    return Part(sure, item.code, says, change.values, None, evidence, rates, where)


def _left_out(context: Context, item: Lost, found: Followed) -> ItemChange | None:
    """Return the exclusion of what is gone, with the release from which on it is."""
    from kunlun_adapt.check.proposed import leave_out

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
    context: Context, findings: Iterable[Finding], entries: Mapping[Place, Entry]
) -> tuple[list[tuple[Place, Part]], list[Finding]]:
    """Return the parts that the findings' own edits make, and the findings without any."""
    made: list[tuple[Place, Part]] = []
    without: list[Finding] = []
    added: list[tuple[Place, Part, Mend, list[Asked]]] = []
    for finding in findings:
        if finding.code in (*OF_LOST, *OF_THE_LOCK) or finding.severity is Severity.INFO:
            continue
        mend = finding.mend
        change = mend.changes[0] if mend is not None and mend.changes else None
        if mend is None or not isinstance(change, EntryChange):
            without.append(finding)
            continue
        place = place_of_change(change)
        entry = entries.get(place)
        if entry is None:
            without.append(finding)
            continue
        sure, rates, evidence = _sureness(mend)
        where = str(finding.upstream) if finding.upstream else None
        part = Part(
            sure, finding.code, finding.message, change.values, None, evidence, rates, where
        )
        made.append((place, part))
        if mend.kind in ("parameters", "renamed_parameter") and sure != "open":
            added.append((place, part, mend, _added(entry, change.values)))
    _ask_who_passes(context, added)
    return made, without


def _sureness(mend: Mend) -> tuple[Class, tuple[Rate, ...], tuple[str, ...]]:
    """Return how sure an edit is by its kind, before anything else is looked at."""
    if mend.asks:
        return "open", (), mend.asks
    if mend.kind == "defined":
        return "certain", (), ("upstream imports it from there: a fact, no guess",)
    if mend.kind == "parameters":
        return "certain", (), ()
    if mend.kind in ("process", "spelled"):
        rate = rate_of(mend.kind, "all")
        return ("certain" if rate.is_certain else "likely"), (rate,), (rate.text,)
    return "likely", (), ()


def _added(entry: Entry, values: Mapping[str, Any]) -> list[Asked]:
    """Return the parameters that an edit ignores and that were not named before."""
    before = entry.stated.get("ignores") or {}
    item = entry.item
    symbol = None
    if isinstance(item, HookBinding):
        symbol = item.symbol
    elif isinstance(item, KernelBinding):
        symbol = item.call
    if not isinstance(symbol, Symbol):
        return []
    new = [name for name in values.get("ignores") or () if name not in before]
    leaf = symbol.path.rpartition(".")[2]
    return [Asked.of(symbol, name, leaf) for name in new]


def _ask_who_passes(
    context: Context, added: Sequence[tuple[Place, Part, Mend, list[Asked]]]
) -> None:
    """Let nobody's word be taken for a parameter that upstream's own calls pass."""
    asked = {item for *_, items in added for item in items}
    if not asked or context.reader is None:
        return
    found = passed(context.reader.release, asked)
    for _, part, mend, items in added:
        told = [f"{i.parameter} is passed in {_some(found[i])}" for i in items if found[i]]
        if told:
            part.sure = "likely"
            part.evidence = (*part.evidence, *told)
        elif mend.kind == "parameters":
            names = ", ".join(i.parameter for i in items)
            said = f"no call in sglang {context.release} passes {names}" if items else ""
            part.evidence = (*part.evidence, *([said] if said else []))


def _some(places: Sequence[Location]) -> str:
    if not places[0].file:
        return "more files than were looked at"
    more = f" and {len(places) - 1} more" if places[1:] else ""
    return f"{places[0]}{more}"

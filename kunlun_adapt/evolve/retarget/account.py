"""Say of each entry what becomes of it: what it needs is put together, and weighed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from kunlun_adapt.check import Context
from kunlun_adapt.check.patches import WRAPPERS
from kunlun_adapt.diagnostics import Finding, ItemChange, Severity
from kunlun_adapt.evolve.retarget.holding import symbol_of
from kunlun_adapt.evolve.retarget.parts import Part, merged
from kunlun_adapt.evolve.retarget.placing import place_before, place_entry
from kunlun_adapt.evolve.retarget.result import Account, Outcome
from kunlun_adapt.evolve.retarget.work import Work
from kunlun_adapt.plan import WRAPPING, HookBinding
from kunlun_adapt.plan.nearest import floor_of
from kunlun_adapt.upstream import Symbol
from kunlun_adapt.upstream.following import FollowingResolver

ASKS_THE_PLATFORM = ("current_platform", "is_out_of_tree", "PlatformCapabilities")
"""What a body reads that asks the platform: a hook on it may be answered twice."""


def account_of(work: Work, context: Context, context_of: Callable[[str], Context]) -> None:
    """Put together what an entry needs, and find out for which releases it would hold so."""
    group, parts = work.group, work.parts
    values, clash = merged(parts)
    item = any(part.item is not None and not part.values for part in parts)
    work.ranges = None if item else place_entry(group, values, context_of, _forms(parts, values))
    for part in parts:
        if part.item is not None and work.ranges is not None and work.ranges.new is not None:
            # What goes with an entry holds from where on the entry does.
            low = floor_of(work.ranges.new)
            part.item = replace(part.item, item={**part.item.item, "sglang": f">={low}"})
    errors = [f for f in work.blocked if f.severity is Severity.ERROR]
    review = [f"{f.code}: {f.message}" for f in work.blocked if f.severity is not Severity.ERROR]
    drifted, asks = _drift(work, context)
    outcome = _outcome(parts, work.ranges is not None or item)
    if clash:
        outcome, review = "left", [*review, f"two findings want another {clash}"]
    if asks and outcome in ("held", "carried"):
        # What was asked of the hook is asked of the platform: whether both, a person has to say.
        outcome = "proposed"
        work.parts = [*parts, _left_to_platform(work, asks, context_of)]
        work.ranges, parts = None, work.parts
    elif work.unused is not None and outcome in ("held", "carried"):
        outcome = "proposed"
        work.parts = [*parts, work.unused]
        work.ranges, parts = None, work.parts
        values = {}
    elif (since := _other_body(work, context)) and outcome in ("held", "carried"):
        outcome = "proposed"
        parts = work.parts = [*parts, Part("likely", "", since)]
        drifted = None
    out = next((p.item for p in parts if p.item is not None and not p.values), None)
    if out is not None:
        work.ranges, values = place_before(group, str(out.item["sglang"]), context_of), {}
    if errors:
        outcome = "left"
    if drifted:
        review.append(drifted)
    gaps = work.ranges.gaps if work.ranges is not None else ()
    if gaps:
        review.append(f"no entry holds for sglang {', '.join(gaps)}")
        outcome = "proposed" if outcome == "carried" else outcome
    repair = [name for part in parts for name in part.repair]
    changed = group.entry.with_values(values)
    new = work.ranges.new or work.ranges.old if work.ranges is not None else None
    work.account = Account(
        binding=group.name,
        outcome=outcome,
        position=group.position,
        codes=tuple(dict.fromkeys([*(p.code for p in parts if p.code), *(f.code for f in errors)])),
        says=(*(p.says for p in parts), *(_said(f) for f in errors)),
        evidence=tuple(dict.fromkeys(line for part in parts for line in part.evidence)),
        rates=tuple(rate for part in parts for rate in part.rates),
        values=values,
        entry={**changed, **({"sglang": new} if new else {})},
        range=new,
        review=tuple(review),
        upstream=next((p.upstream for p in parts if p.upstream), None),
        between=work.ranges.between if work.ranges is not None else (),
        added=next((p.item.item for p in parts if p.item), {"repair": repair} if repair else {}),
    )


def _other_body(work: Work, context: Context) -> str | None:
    """Say from where on what a hook works with does not do what it did, None where it does."""
    group, item = work.group, work.group.entry.item
    if not isinstance(item, HookBinding) or item.hook.type not in WRAPPERS:
        return None
    now = symbol_of(context, group.entry, group.entry.with_values(merged(work.parts)[0]))
    was = group.way[0].resolve(str(group.entry.stated.get("target")))
    if not isinstance(was, Symbol) or now is None or was.kind == "class" or not was.fingerprint:
        return None
    for release in group.way[1:]:
        places = [release.resolve(path) for path in (now.path, was.path)]
        there = next((place for place in places if isinstance(place, Symbol)), None)
        if there is not None and there.fingerprint != was.fingerprint:
            return (
                f"its body changed in sglang {release.version}, and the hook works with it: see "
                "kunlun-adapt diff"
            )
    return None


def _left_to_platform(work: Work, asks: str, context_of: Callable[[str], Context]) -> Part:
    """Return the exclusion of a hook from where on upstream asks the platform by itself."""
    group = work.group
    low = group.way[-1].version
    for release in reversed(group.way[1:-1]):
        context = context_of(release.version)
        symbol = symbol_of(context, group.entry, group.entry.stated)
        text = release.text(symbol.path) if symbol is not None else None
        if not any(word in (text or "") for word in ASKS_THE_PLATFORM):
            break
        low = release.version
    file, document, _ = group.entry.place
    said = {"sglang": f">={low}", "why": "upstream asks the platform there"}
    assert group.leaves_out is not None, "a hook has `excluded`"
    return Part("likely", "", asks, item=ItemChange(file, document, group.leaves_out, said))


def general(finding: Finding) -> Account:
    """Return what is to be said of a finding that no ranged entry answers for."""
    return Account(
        binding=finding.binding or finding.target or "",
        outcome="left",
        position=finding.position,
        codes=(finding.code,),
        says=(_said(finding),),
        upstream=str(finding.upstream) if finding.upstream else None,
    )


def _said(finding: Finding) -> str:
    tip = f"; try: {finding.suggestion}" if finding.suggestion else ""
    return f"{finding.message}{tip}"


def _outcome(parts: Iterable[Part], edits: bool) -> Outcome:
    sure = {part.sure for part in parts}
    if "open" in sure:
        return "left"
    if "likely" in sure:
        return "proposed"
    return "carried" if edits else "held"


def _forms(parts: Iterable[Part], values: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return what an entry may be on the way: moved in part, or with some of the values."""
    moved = [form for part in parts for form in part.forms]
    where = {k: v for k, v in values.items() if k in ("target", "call")}
    rest = {k: v for k, v in values.items() if k not in where}
    places = [{}, *moved, where]
    forms = [{**place, **more} for place in places for more in ([{}, rest] if rest else [{}])]
    return [form for form in forms if form and form != values]


def _drift(work: Work, context: Context) -> tuple[str | None, str | None]:
    """Say whether the body changed, and whether the new one asks the platform by itself."""
    group, reader = work.group, context.reader
    if len(group.way) < 2 or group.entry.item is None:
        return None, None
    if not isinstance(reader, FollowingResolver):
        return None, None
    start = group.way[0]
    path = str(group.entry.stated.get("target") or group.entry.stated.get("call") or "")
    old = start.resolve(path) if path else None
    changed: Mapping[str, Any] = group.entry.with_values(merged(work.parts)[0])
    new = symbol_of(context, group.entry, changed)
    item = group.entry.item
    if not isinstance(old, Symbol) or new is None:
        return None, None
    if old.kind == "class" and not isinstance(item, HookBinding):
        return None, None  # of a class that is there for one method the method tells
    if not old.fingerprint or old.fingerprint == new.fingerprint:
        return None, None
    drifted = f"its body is not what it was in {start.version}: see whether the binding still fits"
    wraps = isinstance(item, HookBinding) and item.hook.type in WRAPPING
    if not wraps or old.kind == "class":
        return drifted, None
    before, after = start.text(old.path) or "", reader.text(new.path) or ""
    asked = [w for w in ASKS_THE_PLATFORM if w in after and w not in before]
    if not asked:
        return drifted, None
    return drifted, (
        f"upstream asks the platform there ({asked[0]}), which it did not in {start.version}: "
        "what the hook answers may be the platform's to answer"
    )

"""The edit that follows a symbol to where it is: for which releases, and with which parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from packaging.version import Version

from kunlun_adapt.check.context import Context
from kunlun_adapt.check.keys import SLIPS
from kunlun_adapt.check.parameters import GRID, Place, allowed_alone, named, place_of
from kunlun_adapt.check.proposed import around, leave_out, possible
from kunlun_adapt.check.ranges import ranged
from kunlun_adapt.check.targets import SURE, Lost, Use
from kunlun_adapt.check.wording import flow, listed
from kunlun_adapt.diagnostics import EntryChange, Mend
from kunlun_adapt.documents import in_range
from kunlun_adapt.documents.fields import ANY
from kunlun_adapt.plan import forward_called
from kunlun_adapt.source.signatures import ANY_VALUE
from kunlun_adapt.upstream import Missing, Suggestion


@dataclass(frozen=True, slots=True)
class _Releases:
    """The range of the new entry, None for the old one's, and what there is to say of it."""

    range: str | None
    beside: bool
    notes: list[str]


@dataclass(frozen=True, slots=True)
class _Parameters:
    """What the new entry says of upstream's parameters, and which are for a person to decide."""

    changed: dict[str, Any]
    notes: list[str]


def edit(context: Context, use: Use, path: str) -> Mend:
    """Return the edit that binds the symbol under its other path in the releases that have it so.

    It is the entry that stands there, under another range, with `ignores` for what is new.
    """
    if use.key == "class":
        where = path.rpartition(".")
        return Mend(f"{where[0]}:{where[2]}")
    if use.key == "repair":
        return Mend(path)
    if use.key == "readback":
        shown = {**use.entry, "target": path}
        return _change(f"readback: {flow(shown)}", use, {"readback": shown}, ())
    releases, parameters = _releases(context, use, path), _parameters(context, use, path)
    # What is excluded is so for the whole binding, and stays said where the old entry stays.
    again = ("sglang", use.key, *(["excluded"] if releases.beside else []))
    stated = {k: v for k, v in use.entry.items() if k not in again}
    start = {"sglang": releases.range} if releases.range else {}
    entry = {**start, use.key: path + use.tail, **stated, **parameters.changed}
    notes = "; ".join([*parameters.notes, *releases.notes])
    text = f"- {flow({k: v for k, v in entry.items() if v is not None})}  # {notes}"
    values = {use.key: path + use.tail, **parameters.changed}
    return _change(text, use, values, tuple(parameters.notes))


def _change(text: str, use: Use, values: Mapping[str, Any], asks: tuple[str, ...]) -> Mend:
    if use.document is None:
        return Mend(text)
    raw = use.document.raw
    return Mend(text, "moved", (EntryChange(raw.file, raw.index, use.place, values),), asks)


def _releases(context: Context, use: Use, path: str) -> _Releases:
    """Say where the new entry holds, by where the lock has the old path.

    A path that differs by a slip from the one that there is, and that the lock never had, was one.
    """
    own = str(use.entry.get("sglang", ANY))
    inside = in_range(own, context.floor)
    held = _held(context, use.path)
    if inside and not held and _differ_by_a_slip(use.path, path):
        return _Releases(use.entry.get("sglang"), False, ["in place of the entry there"])
    # Inside its own range an entry meets no other.
    taken = [] if inside else [own, *_siblings(context, use)]
    part = around(context, taken, known=held if held or inside else None)
    notes, rest = [], [own]
    if inside:
        rest = part.rest_of(own, possible(context, own))
        kept = " and ".join(f'`sglang: "{text}"`' for text in rest)
        notes.append(f"the entry there: {kept}" if rest else "in place of the entry there")
    before = [r for r in held if part.low is not None and Version(r) < part.low]
    if before:
        notes.append(f"or from an earlier release on, after {before[-1]}")
    elif not held:
        notes.append(f"or from another release on: {context.release} was looked at")
    return _Releases(part.within(own) if inside else part.text, bool(rest), notes)


def _differ_by_a_slip(one: str, other: str) -> bool:
    from rapidfuzz.distance import Levenshtein

    return Levenshtein.distance(one, other) <= SLIPS


def _held(context: Context, path: str) -> list[str]:
    """The other releases for which the lock has a symbol at the path, oldest first."""
    lock = context.lock
    releases = lock.releases if lock is not None else ()
    return [r for r in releases if r != context.release and lock and lock.symbol(r, path)]


def _siblings(context: Context, use: Use) -> Iterator[str]:
    """Yield the ranges of the binding's other entries."""
    if use.key == "call":
        for key, spellings in context.map.interface.items():
            for i, spelling in enumerate(spellings):
                if context.document.at("interface", key, i, "call") == use.position:
                    yield from (s.sglang for s in spellings if s is not spelling)
        return
    group = next((g for g in ranged(context) if g.binding == use.binding), None)
    if group is not None:
        own = str(use.entry.get("sglang", ANY))
        yield from (text for text, _ in group.ranges if text != own)


def _parameters(context: Context, use: Use, path: str) -> _Parameters:
    place = _place(context, use, path) if use.key == "target" else None
    if place is None:
        return _Parameters({}, [])
    known, free = place.signature.names, place.free()
    added = {p.name: allowed_alone(p) for p in place.signature.parameters if p.name in free}
    open_ = [name for name, allowed in added.items() if allowed == ANY_VALUE]
    plain = {name: allowed for name, allowed in added.items() if name not in open_}
    stated = place.at.ignores
    gone = named(place.at) - {*known, GRID}
    ignores: Any = [n for n in stated if n not in gone]
    if plain or not isinstance(stated, list):
        before = dict.fromkeys(stated, ANY_VALUE) if isinstance(stated, list) else stated
        ignores = {**{n: v for n, v in before.items() if n not in gone}, **plain}
    notes = []
    if open_:
        notes.append(f"map {listed(open_)} in `args` or ignore {'them' if open_[1:] else 'it'}")
    lost = [name for name, path in place.at.args.items() if path.partition(".")[0] in gone]
    if lost:
        notes.append(f"find what {listed(lost)} {'read' if lost[1:] else 'reads'} there")
    changed = {} if ignores == stated else {"ignores": ignores or None}
    return _Parameters(changed, notes)


def _place(context: Context, use: Use, path: str) -> Place | None:
    """The binding's place as it would be at the other path; None where no call is read."""
    for hook in context.hooks:
        if hook.document.at(*hook.path, "target") == use.position:
            return place_of(hook, context.facts.resolve(path))
    for kernel in context.kernels:
        if kernel.recipe.at(*kernel.path, "target") == use.position:
            outer = kernel.bind.style == "oot_forward"
            facts = context.facts
            return place_of(kernel, forward_called(facts, path) if outer else facts.resolve(path))
    return None


def places_now(missing: Missing) -> str | None:
    """Return a question that names the places where a missing symbol may be, each with how sure."""
    near = missing.suggestions[:3]
    if not near:
        return None
    paths = " or ".join(s.path for s in near)
    return f"did you mean {paths}? ({', '.join(confidence(s) for s in near)})"


def confidence(suggestion: Suggestion) -> str:
    """Return how sure a suggestion is, as a percentage; never quite sure."""
    return f"{min(99, round(suggestion.score * 100))} %"


def where_now(context: Context, found: Lost) -> Mend | str | None:
    """Return the suggestion for a lost symbol: the edit, what is near, or to leave it out."""
    if found.moved_to is not None:
        return edit(context, found.use, found.moved_to.path)
    near = found.missing.suggestions
    if (near and near[0].score >= SURE) or not _excludable(context, found.use):
        return places_now(found.missing) or _left_out(context, found.use)
    # It is gone for all that can be seen: what is like it is only a place to look at.
    hints = [f"{s.path} ({confidence(s)})" for s in near[:3]]
    looks = f"; what comes nearest by name: {listed(hints)}" if hints else ""
    out = leave_out(context, found.use.binding)
    return out.saying(f"if nothing took its place, leave it out: {out.text}{looks}")


def _left_out(context: Context, use: Use) -> str | None:
    """Return the edit that does without a symbol which no `excluded` can leave out."""
    if use.key == "repair":
        return "if nothing took its place, take it out of `repair`"
    if use.key == "class":
        key = next((m.key for m in context.members if m.binding.id == use.binding), None)
        left = around(context).text
        return key and (
            f"if nothing took its place, leave {key} as upstream has it: `left_at_default`: add "
            f'{{member: {key}, sglang: "{left}", why: "…"}}, and let no entry of '
            f"interface.{key} hold for {left}"
        )
    if use.key == "call":
        own = str(use.entry.get("sglang", ANY))
        kept = around(context).rest_of(own, possible(context, own))
        ranges = " and ".join(f'`sglang: "{text}"`' for text in kept)
        do = f"for the entry there: {ranges}" if kept else "remove it"
        return f"if nothing took its place, {do}"
    return None


def _excludable(context: Context, use: Use) -> bool:
    """Tell whether it is a hook or a place of an operator that lost its target."""
    groups = ranged(context) if use.key == "target" else ()
    return any(group.binding == use.binding for group in groups)

"""Upstream's platform class, member by member: what it is, what it does by itself, who asks it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from kunlun_adapt.check.left import left_alone
from kunlun_adapt.evolve.diff.code import code_diff
from kunlun_adapt.evolve.diff.facts import symbol_facts
from kunlun_adapt.evolve.diff.naming import listed
from kunlun_adapt.evolve.diff.records import Change, Fact, Place, Risk
from kunlun_adapt.evolve.diff.sides import Side, Sides, place
from kunlun_adapt.plan import CAPABILITIES, PLATFORM, spelled
from kunlun_adapt.upstream import Symbol
from kunlun_adapt.upstream.inventory import Item, fields


@dataclass(frozen=True, slots=True)
class _Key:
    """A key of the map in one release: the member that spells it, and the binding that gives it."""

    member: str
    binding: str


def platform_changes(sides: Sides) -> Iterator[Change]:
    """Yield each member and capability that came, went, changed, or that others ask for now."""
    old, new = _members(sides.old), _members(sides.new)
    for name in sorted(old.keys() | new.keys()):
        change = _member(sides, name, old.get(name), new.get(name))
        if change is not None:
            yield change
    yield from _capabilities(sides)


def compared(sides: Sides) -> int:
    """Return how many members and capabilities were looked at."""
    names = {*_members(sides.old), *_members(sides.new)}
    return len(names | {*_fields(sides.old), *_fields(sides.new)})


def _members(side: Side) -> dict[str, Symbol]:
    members = side.context.platform_members
    return {name: symbol for name, symbol in members.items() if not name.startswith("__")}


def _keys(side: Side) -> dict[str, _Key]:
    """The keys that the map gives and the release spells, by key."""
    return {m.key: _Key(m.name, m.binding.id) for m in side.context.members if m.name}


def _member(sides: Sides, name: str, old: Symbol | None, new: Symbol | None) -> Change | None:
    facts: list[Fact] = []
    code = ""
    if old is None:
        facts.append(Fact("added", f"new since {sides.old.release}{_signature(new)}"))
    elif new is None:
        facts.append(Fact("removed", f"not in {sides.new.release} any more"))
    else:
        facts += symbol_facts(old, new)
        if old.fingerprint != new.fingerprint and old.kind != "attribute":
            code = code_diff(sides.old.text(old), sides.new.text(new), old.location, new.location)
    readers = _readers(sides, name)
    return _change(sides, name, name, facts, readers, old, new, code)


def _signature(symbol: Symbol | None) -> str:
    if symbol is None or symbol.signature is None:
        return ""
    return f": {symbol.name}{symbol.signature.text()}"


def _change(
    sides: Sides,
    member: str,
    subject: str,
    facts: list[Fact],
    readers: Fact | None,
    old: Symbol | None,
    new: Symbol | None,
    code: str = "",
) -> Change | None:
    """Make the change of a member or a capability; None where nothing changed."""
    before = {k.binding: key for key, k in _keys(sides.old).items() if k.member == member}
    after = {k.binding: key for key, k in _keys(sides.new).items() if k.member == member}
    bindings = tuple(dict.fromkeys((*before, *after)))
    now = {k.binding: k.member for k in _keys(sides.new).values()}
    for binding, key in before.items():
        if binding not in after and binding in now:
            facts.append(Fact("spelling", f"the key {key} is spelled {now[binding]} now"))
    for binding, key in after.items():
        if binding not in before:
            facts.append(Fact("spelling", f"this is how the key {key} is spelled now"))
    for binding in before:
        out = sides.new.bindings.get(binding)
        if out is not None and out.status == "excluded" and out.status_why:
            facts.append(Fact("left out", f"left out of {sides.new.release}: {out.status_why}"))
            now[binding] = ""
    context = sides.new.context
    holder = member == CAPABILITIES and _capability_class(sides.new) is not None
    left = not bindings and (holder or left_alone(context, member))
    if left and facts and not holder:
        facts.append(Fact("spelling", "the map leaves it as upstream has it"))
    if readers is not None:
        facts.append(readers)
    if not facts:
        return None
    followed = left or all(b in after or b in now for b in bindings) if bindings else left
    return Change(
        id=f"platform/{subject}",
        landing="platform",
        subject=subject,
        risk=_risk(facts, bool(bindings), followed, asked=bool(_asked(sides, member))),
        facts=tuple(facts),
        old=place(old) if old else None,
        new=place(new) if new else None,
        family=PLATFORM,
        status=sides.status(bindings),
        bindings=bindings,
        roles=("member",),
        features=sides.features(bindings),
        followed=followed,
        code=code,
    )


def _risk(facts: list[Fact], given: bool, followed: bool, asked: bool) -> Risk:
    aspects = {fact.aspect for fact in facts}
    if "removed" in aspects:
        return Risk.HIGH if given and not followed else Risk.LOW
    if "added" in aspects:
        return Risk.MEDIUM if asked and not followed else Risk.LOW
    return Risk.LOW if aspects <= {"readers", "spelling", "inherited"} else Risk.MEDIUM


def _asked(sides: Sides, name: str) -> tuple[str, ...]:
    """The lines that ask the platform for a member in the new release."""
    return sides.new.table("platform_readers").get(name, Item()).places


def _readers(sides: Sides, name: str) -> Fact | None:
    """Say who asks the platform for a member, where that changed by more than lines that move."""
    old = sides.old.table("platform_readers").get(name, Item())
    new = sides.new.table("platform_readers").get(name, Item())
    before, after = _files(old), _files(new)
    if before == after:
        return None
    if not before:
        return Fact("readers", f"upstream asks for it now: {listed(sorted(after))}")
    if not after:
        return Fact("readers", f"upstream does not ask for it any more; {listed(sorted(before))}")
    come, gone = sorted(after - before), sorted(before - after)
    parts = [f"now asked in {listed(come)}"] if come else []
    parts += [f"no longer asked in {listed(gone)}"] if gone else []
    return Fact("readers", "; ".join(parts))


def _files(item: Item) -> set[str]:
    return {text.rpartition(":")[0] for text in item.places}


def _capability_class(side: Side) -> str | None:
    spelling = spelled(side.context.map, CAPABILITIES, side.release)
    return spelling.call if spelling is not None else None


def _fields(side: Side) -> dict[str, Item]:
    path = _capability_class(side)
    return fields(side.resolver, path) if path else {}


def _capabilities(sides: Sides) -> Iterator[Change]:
    """Compare the fields of upstream's capabilities."""
    old, new = _fields(sides.old), _fields(sides.new)
    for name in sorted(old.keys() | new.keys()):
        before, after = old.get(name), new.get(name)
        facts: list[Fact] = []
        if before is None and after is not None:
            facts.append(
                Fact("added", f"new since {sides.old.release}, {after.default} by default")
            )
        elif after is None and before is not None:
            facts.append(Fact("removed", f"not in {sides.new.release} any more"))
        elif before is not None and after is not None:
            if before.text != after.text:
                facts.append(Fact("type", f"{after.text}, was {before.text}"))
            if before.default != after.default:
                facts.append(Fact("default", f"{after.default}, was {before.default}"))
        member = f"{CAPABILITIES}.{name}"
        change = _change(sides, member, member, facts, _readers(sides, member), None, None)
        if change is not None:
            yield _with_places(change, sides, name, before, after)


def _with_places(
    change: Change, sides: Sides, name: str, before: Item | None, after: Item | None
) -> Change:
    """Return the change of a field with the lines where it stands."""
    places = []
    for side, item in ((sides.old, before), (sides.new, after)):
        owner, at = _capability_class(side), item.location if item else None
        places.append(Place(f"{owner}.{name}", at.file, at.line) if owner and at else None)
    return replace(change, old=places[0], new=places[1])

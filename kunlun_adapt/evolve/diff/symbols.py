"""Each symbol that a binding depends on, followed from the old release to the new one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kunlun_adapt.check.moves import confidence
from kunlun_adapt.evolve.diff.code import code_diff
from kunlun_adapt.evolve.diff.facts import caller_facts, symbol_facts
from kunlun_adapt.evolve.diff.records import Aspect, Change, Fact, Landing, Risk
from kunlun_adapt.evolve.diff.sides import Sides, place
from kunlun_adapt.evolve.diff.subjects import Subject
from kunlun_adapt.plan import Binding
from kunlun_adapt.upstream import Symbol

CALLED = ("target", "forward")
"""The roles whose callers matter: ours stands there for what is called."""
MEDIUM: frozenset[Aspect] = frozenset(
    {
        *("kind", "signature", "async", "decorators", "guard", "variants", "bases", "inherited"),
        *("value", "default", "body", "calls"),
    }
)
"""What may change what a binding does although it still binds."""
FUNCTIONS: frozenset[str] = frozenset(
    {
        *("function", "async_function", "method", "classmethod", "staticmethod"),
        *("triton_kernel", "custom_op", "cached_function"),
    }
)
"""The kinds that a function may change between and still be the same."""
USED_AS_IT_IS = frozenset({"interface", "process", "readback", "repair"})
"""The roles in which nothing of ours stands for a symbol: what it does inside is its own."""


@dataclass(frozen=True, slots=True)
class _Pair:
    """What one binding depends on in both releases; `new` may be where a lost symbol is."""

    subject: Subject
    old: Symbol | None
    new: Symbol | None
    facts: tuple[Fact, ...]
    followed: bool = False


def symbol_changes(sides: Sides) -> Iterator[Change]:
    """Yield one change per pair of upstream places, for all bindings that depend on it."""
    for side in (sides.old, sides.new):
        called = [s.symbol for s in side.subjects.values() if s.role in CALLED]
        functions = [s.path for s in called if isinstance(s, Symbol) and "." not in s.qualname]
        side.resolver.expect_callers(functions)
    groups: dict[tuple[str, str], list[_Pair]] = {}
    keys = dict.fromkeys((*sides.new.subjects, *sides.old.subjects))
    for key in keys:
        pair = _pair(sides, sides.old.subjects.get(key), sides.new.subjects.get(key))
        if pair is not None:
            one = pair.old.resolved if pair.old else ""
            other = pair.new.resolved if pair.new else ""
            # A symbol that is gone is told for each path by which it was known.
            groups.setdefault((one, other or pair.subject.path), []).append(pair)
    for pairs in groups.values():
        change = _change(sides, pairs)
        if change is not None:
            yield change


def _pair(sides: Sides, old: Subject | None, new: Subject | None) -> _Pair | None:
    """Say where a symbol went; None where neither release has it."""
    before = old.symbol if old is not None and isinstance(old.symbol, Symbol) else None
    after = new.symbol if new is not None and isinstance(new.symbol, Symbol) else None
    subject = new or old
    assert subject is not None
    if before is None:
        if after is None or subject.role not in CALLED:
            return None
        return _Pair(subject, None, after, (Fact("appeared", _appeared(sides, old)),), True)
    assert old is not None
    if new is None:
        binding = sides.new.bindings.get(old.key[0])
        why = binding.status_why if binding is not None and binding.status == "excluded" else None
        if why is None:
            return None  # the role is gone with what the documents say of it
        if old.role not in CALLED:
            return None
        text = f"left out of {sides.new.release}: {why}"
        return _Pair(old, before, None, (Fact("left out", text),), True)
    if after is not None:
        return _Pair(new, before, after, tuple(_moves(old, new, before, after)), True)
    found = _found(sides, new, before)
    if found is None:
        near = new.lost.missing.suggestions[:3] if new.lost else ()
        hints = ", ".join(f"{s.path} ({confidence(s)})" for s in near)
        text = f"{new.path} is gone" + (f"; what comes nearest by name: {hints}" if hints else "")
        return _Pair(new, before, None, (Fact("gone", text),))
    symbol, why = found
    aspect: Aspect = "moved" if symbol.name == before.name else "renamed"
    text = f"{new.path} is gone; it is {symbol.path} now ({why})"
    return _Pair(new, before, symbol, (Fact(aspect, text),))


def _appeared(sides: Sides, old: Subject | None) -> str:
    if old is not None:
        return f"{old.path} is not in {sides.old.release}"
    return f"nothing is bound in {sides.old.release}"


def _found(sides: Sides, new: Subject, before: Symbol) -> tuple[Symbol, str] | None:
    """Return what stands at the one place where a lost symbol surely is, and why it is that.

    A value of a function's name is not the function.
    """
    moved = new.lost.moved_to if new.lost is not None else None
    symbol = sides.new.resolver.resolve(moved.path) if moved is not None else None
    if moved is None or not isinstance(symbol, Symbol):
        return None
    if symbol.kind != before.kind and not {symbol.kind, before.kind} <= FUNCTIONS:
        return None
    return symbol, f"{confidence(moved)}, {moved.why}"


def _moves(old: Subject, new: Subject, before: Symbol, after: Symbol) -> Iterator[Fact]:
    """Yield how a symbol that both releases have came to another place."""
    if old.path != new.path:
        aspect: Aspect = "moved" if before.name == after.name else "renamed"
        yield Fact(aspect, f"{new.path}, was {old.path}; the documents name both")
    elif before.resolved != after.resolved:
        aspect = "moved" if _leaf(before) == _leaf(after) else "renamed"
        yield Fact(
            aspect, f"defined in {after.resolved}, was {before.resolved}; the old path leads there"
        )


def _leaf(symbol: Symbol) -> str:
    return symbol.resolved.rpartition(".")[2]


def _change(sides: Sides, pairs: list[_Pair]) -> Change | None:
    first = pairs[0]
    old, new = first.old, first.new
    facts = [fact for pair in pairs for fact in pair.facts]
    code = ""
    if old is not None and new is not None:
        facts += symbol_facts(old, new)
        if old.fingerprint != new.fingerprint:
            code = code_diff(sides.old.text(old), sides.new.text(new), old.location, new.location)
        if any(pair.subject.role in CALLED for pair in pairs):
            facts += caller_facts(
                sides.old.resolver.callers(old.path),
                sides.new.resolver.callers(new.path),
                all_known="." not in old.qualname + new.qualname,
            )
    facts = list(dict.fromkeys(facts))
    if not facts:
        return None
    bindings = tuple(dict.fromkeys(p.subject.key[0] for p in pairs if p.subject.key[0]))
    known = {**sides.old.bindings, **sides.new.bindings}
    roles = tuple(dict.fromkeys(pair.subject.role for pair in pairs))
    subject = new.path if new is not None else first.subject.path
    landing = _landing(first, roles, known)
    followed = all(pair.followed for pair in pairs)
    return Change(
        id=f"{landing}/{subject}",
        landing=landing,
        subject=subject,
        risk=_risk(facts, followed, roles),
        facts=tuple(facts),
        old=place(old) if old else None,
        new=place(new) if new else None,
        family=next((known[b].family for b in bindings if b in known), ""),
        status=sides.status(bindings),
        bindings=bindings,
        roles=roles,
        features=sides.features(bindings),
        followed=followed,
        code=code,
    )


def _landing(pair: _Pair, roles: tuple[str, ...], known: dict[str, Binding]) -> Landing:
    role = pair.subject.role
    if set(roles) == {"watch"}:
        return "neighbour"
    if role == "process":
        return "process"
    if role in ("interface", "class"):
        return "platform"
    binding = known.get(pair.subject.key[0])
    return "operator" if binding is not None and binding.kind == "kernel" else "hook"


def _risk(facts: list[Fact], followed: bool, roles: tuple[str, ...]) -> Risk:
    aspects = {fact.aspect for fact in facts}
    if not followed and aspects & {"gone", "moved", "renamed"}:
        return Risk.HIGH
    if set(roles) <= USED_AS_IT_IS:
        aspects -= {"body", "value"}
    return Risk.MEDIUM if aspects & MEDIUM else Risk.LOW

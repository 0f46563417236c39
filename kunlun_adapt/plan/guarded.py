"""Which optional arguments a tier may read: those that are present once it is tried.

A condition on an absent argument does not hold where tiers are analysed, but the compiled one would
raise in the middle of a call. So a tier asks for `residual: present` before it reads a property of
it, or a tier above, which asks for `residual: none` alone, has taken all calls without it. What is
asked of an optional scalar itself needs no such care: its test asks for None first.
"""

from __future__ import annotations

from kunlun_adapt.plan.conditions import Condition
from kunlun_adapt.plan.tiers import TierTable


def unguarded(table: TierTable) -> list[tuple[str, str]]:
    """Return (tier, subject) of every condition that could read an absent argument.

    Formulas are computed before the first tier is tried, so nothing guards a derived name that is
    made of an optional argument.
    """
    optional = {p.name for p in table.params.values() if p.optional}
    found = []
    above: frozenset[str] = frozenset()
    for name, conditions in table.tiers:
        known = set(above)
        for condition in conditions:
            subject = condition.subject
            if subject.scope != "call":
                continue
            if subject.root in table.derived:
                if _reads(table, subject.root) & optional:
                    found.append((name, subject.text))
            elif subject.root in optional - known and not _takes_none(condition):
                found.append((name, subject.text))
            known |= _proves(condition)
        above |= _proved_below(conditions)
    return found


def present(table: TierTable) -> dict[str, frozenset[str]]:
    """Return for each tier the optional arguments that are there when it serves a call."""
    found = {}
    above: frozenset[str] = frozenset()
    optional = {p.name for p in table.params.values() if p.optional}
    for name, conditions in table.tiers:
        proved = {n for c in conditions for n in _proves(c)}
        found[name] = frozenset((above | proved) & optional)
        above |= _proved_below(conditions)
    return found


def _takes_none(condition: Condition) -> bool:
    """Tell whether the compiled test answers for None: all do that are asked of a bare name."""
    return condition.subject.prop is None


def _proves(condition: Condition) -> set[str]:
    """Return what is present once the condition has held."""
    absent_passes = condition.subject.prop is None and condition.test.holds(None)
    call = condition.subject.scope == "call"
    return {condition.subject.root} if call and not absent_passes else set()


def _proved_below(conditions: tuple[Condition, ...]) -> frozenset[str]:
    """Return what is present in every tier below one that takes all calls without it."""
    if len(conditions) != 1 or conditions[0].subject.scope != "call":
        return frozenset()
    subject, test = conditions[0].subject, conditions[0].test
    alone = subject.prop is None and test.holds(None)
    return frozenset({subject.root}) if alone else frozenset()


def _reads(table: TierTable, name: str) -> set[str]:
    """Return the arguments that a derived name is made of, through other derived names."""
    found: set[str] = set()
    for text in table.derived[name].subjects:
        root = text.split(".")[0]
        found |= _reads(table, root) if root in table.derived else {root}
    return found

"""The migration checklist: what is left to do, and what ticks each step off.

A step is open while `validate --beyond-claims` on the new release finds something of its codes
about its bindings, or while a body that changed has not been locked for that release: to lock it
is to say that somebody looked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from kunlun_adapt.check import Context
from kunlun_adapt.check.accepted import accepted
from kunlun_adapt.check.rules import BOTH_RULES, CLAIM_RULES, RELEASE_RULES
from kunlun_adapt.diagnostics import CODES, Finding, Severity
from kunlun_adapt.evolve.diff.records import Aspect, Change, Item, Risk
from kunlun_adapt.evolve.diff.sides import Sides, at_least
from kunlun_adapt.upstream import Symbol

OPENED_BY: dict[Aspect, tuple[str, ...]] = {
    "gone": ("KA101", "KA103", "KA201"),
    "moved": ("KA101", "KA102", "KA103", "KA108"),
    "renamed": ("KA101", "KA102", "KA103", "KA108"),
    "removed": ("KA201", "KA202", "KA208", "KA209"),
    "added": ("KA203", "KA204"),
    "kind": ("KA104", "KA110", "KA111", "KA122"),
    "signature": ("KA105", "KA114", "KA115", "KA207"),
    "calls": ("KA115", "KA119", "KA120"),
    "async": ("KA104", "KA111"),
    "guard": ("KA112", "KA113"),
    "variants": ("KA112", "KA113"),
    "inherited": ("KA109",),
    "bases": ("KA109",),
    "decorators": ("KA104", "KA211"),
    "spelling": ("KA201", "KA202", "KA206", "KA208"),
    "plugins": ("KA407",),
    "left out": ("KA121",),
    "type": ("KA209",),
    "choices": ("KA209", "KA210"),
}
"""The codes with which `validate` says that a change of this kind is not followed yet."""
REVIEWED: frozenset[Aspect] = frozenset(
    {"body", "value", "default", "guard", "decorators", "bases", "async", "kind", "signature"}
)
"""What no rule can judge: a person has to look, and says so by locking the release."""
_NO_STEP = ("server_args", "environment", "feature")
"""Where only a finding makes a step: nothing else could tick it off."""
SERVER_ARGUMENT = "KA209"
DRIFT = ("KA106", "KA107", "KA116")


def findings_at(context: Context) -> tuple[Finding, ...]:
    """Return what `validate` finds that is wrong in the release, beyond all claims.

    What a workspace owes to itself whatever the release is left out: no migration mends it.
    """
    open_ = not context.platform_packages_missing
    rules = (*CLAIM_RULES, *RELEASE_RULES, *BOTH_RULES) if open_ else CLAIM_RULES
    said = [finding for rule in rules for finding in rule(context)]
    return tuple(sorted(dict.fromkeys(accepted(context, said)), key=lambda f: f.sort_key))


def weighed(sides: Sides, changes: Iterable[Change]) -> tuple[Change, ...]:
    """Return the changes with the risk that the findings give them, the gravest first."""
    found = []
    for change in changes:
        risk = change.risk
        if any(f.severity is Severity.ERROR for f in _findings(sides, change)):
            risk = at_least(risk, Risk.HIGH)
        found.append(replace(change, risk=risk))
    return tuple(sorted(found, key=lambda change: change.sort_key))


def checklist(sides: Sides, changes: Iterable[Change]) -> tuple[Item, ...]:
    """Return the steps: one per change that asks for one, then what else `validate` finds."""
    # Where there is no door for a platform, whatever else falls short only repeats that.
    closed = sides.new.context.platform_packages_missing
    steps = () if closed else changes
    items = [item for change in steps if (item := _item(sides, change)) is not None]
    told = {finding for item in items for finding in item.findings}
    items += _others(sides, _of_the_change(sides, (f for f in sides.findings if f not in told)))
    return tuple(sorted(items, key=lambda item: item.sort_key))


def _findings(sides: Sides, change: Change) -> tuple[Finding, ...]:
    """What is found at the new release about a change, and about what it changed."""
    codes = _codes(change)
    targets = _targets(change)
    if change.landing == "server_args":
        # A field is named by whichever class lists it.
        named = [f for f in sides.findings if (f.target or "").endswith(f".{change.subject}")]
        return tuple(f for f in named if f.code == SERVER_ARGUMENT)
    return tuple(
        finding
        for finding in sides.about(change.bindings, *targets)
        if finding.code in codes
        and finding.severity is not Severity.INFO
        # Of several places that one binding depends on, it is about the one that it names.
        and (finding.target is None or finding.target in targets or not change.bindings)
    )


def _codes(change: Change) -> tuple[str, ...]:
    codes = [code for aspect in change.aspects for code in OPENED_BY.get(aspect, ())]
    codes += DRIFT if change.aspects & REVIEWED else ()
    return tuple(sorted(set(codes)))


def _targets(change: Change) -> tuple[str, ...]:
    paths = [place.path for place in (change.new, change.old) if place is not None]
    return tuple(dict.fromkeys((change.subject, *paths)))


def _item(sides: Sides, change: Change) -> Item | None:
    findings = _findings(sides, change)
    # What is still to be written has nothing yet that a changed body could break.
    asked = change.status == "bound" and change.landing not in _NO_STEP
    if not findings and (not asked or change.risk is Risk.LOW):
        return None
    unlocked = _unlocked(sides, change)
    return Item(
        id=change.id,
        title=f"{change.subject}: {', '.join(dict.fromkeys(f.aspect for f in change.facts))}",
        risk=change.risk,
        done=not findings and not unlocked,
        todo=_todo(sides, findings, unlocked),
        codes=_codes(change),
        bindings=change.bindings,
        targets=_targets(change),
        findings=findings,
        unlocked=unlocked,
        changes=(change.id,),
        family=change.family,
        status=change.status,
    )


def _unlocked(sides: Sides, change: Change) -> tuple[str, ...]:
    """The paths of a bound change that the lock does not hold as the new release has them."""
    lock, release = sides.new.context.lock, sides.new.release
    if lock is None or change.status != "bound" or not change.aspects & REVIEWED:
        return ()
    now = sides.new.resolver.resolve(change.subject) if change.new is not None else None
    if not isinstance(now, Symbol):
        return ()
    held = lock.symbol(release, change.subject)
    same = held is not None and held.fingerprint == now.fingerprint
    return () if same else (change.subject,)


def _todo(sides: Sides, findings: tuple[Finding, ...], unlocked: tuple[str, ...]) -> str:
    if findings:
        tips = [f.suggestion or f.message for f in findings]
        return "; ".join(dict.fromkeys(tips))
    if unlocked:
        command = sides.new.context.lock_command()
        return f"read what changed and adapt what stands in its place, then {command}"
    return "nothing: the documents follow it, and validate finds nothing about it"


def _of_the_change(sides: Sides, findings: Iterable[Finding]) -> Iterator[Finding]:
    """Leave out warnings that no change between the two releases is the cause of.

    Those are about a release as a whole, or are found alike in the old one.
    """
    found = [f for f in findings if f.severity is not Severity.INFO]
    about = [f for f in found if f.severity is Severity.ERROR or f.binding or f.target]
    if all(f.severity is Severity.ERROR for f in about):
        yield from about
        return
    before = {(f.code, f.binding, f.target) for f in findings_at(sides.old.context)}
    for finding in about:
        same = (finding.code, finding.binding, finding.target) in before
        if finding.severity is Severity.ERROR or not same:
            yield finding


def _others(sides: Sides, findings: Iterable[Finding]) -> Iterator[Item]:
    """The findings that no change explains, one step per code and binding."""
    groups: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        about = finding.binding or finding.target or str(finding.position)
        groups.setdefault((finding.code, about), []).append(finding)
    for (code, about), group in groups.items():
        grave = any(f.severity is Severity.ERROR for f in group)
        tips = dict.fromkeys(f.suggestion or f.message for f in group)
        bindings = tuple(dict.fromkeys(f.binding for f in group if f.binding))
        known = sides.new.bindings
        yield Item(
            id=f"{code}/{about}",
            title=f"{about}: {CODES[code].name}",
            risk=Risk.HIGH if grave else Risk.MEDIUM,
            done=False,
            todo="; ".join(tips),
            codes=(code,),
            bindings=bindings,
            targets=tuple(dict.fromkeys(f.target for f in group if f.target)),
            findings=tuple(group),
            family=next((known[b].family for b in bindings if b in known), ""),
            status=sides.status(bindings),
        )

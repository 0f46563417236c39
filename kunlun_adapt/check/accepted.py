"""Warnings that a binding's author has looked at and accepted, with the reason.

KA012: an acceptance that no warning of the release answers to. It is looked for here, once all
rules have spoken, and not in a rule of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from kunlun_adapt.check.context import Context
from kunlun_adapt.check.wording import listed
from kunlun_adapt.diagnostics import CODES, Finding, Severity
from kunlun_adapt.documents import Bind, Document, Hook, HookAt, in_range
from kunlun_adapt.documents.platform_map import Accept
from kunlun_adapt.plan import bind_groups
from kunlun_adapt.upstream import Symbol

CODE = "KA012"
PLATFORM = ("factory/", "method/")
"""How the bindings of the platform itself are called: the map accepts what is said of them."""

OF_THE_LOCK = ("KA011", "KA106", "KA107", "KA116")
"""What is said in full only of releases that the lock holds."""

OF_LEFT_OUT = "KA121"
"""The code that speaks of bindings where they do not hold, and of no others."""


@dataclass(frozen=True, slots=True)
class Acceptances:
    """What is accepted of one binding, and where; an empty name stands for the platform."""

    binding: str
    accepts: list[Accept]
    document: Document[Any]
    path: tuple[str | int, ...]
    of: Hook | Bind | None = None
    """What states them, None for the map."""


def accepted(context: Context, findings: Iterable[Finding]) -> Iterator[Finding]:
    """Turn each accepted warning into information that says why it was accepted.

    An error stays one: what cannot work does not work better for a reason. What the map accepts at
    its top holds for findings about the platform, and for those about no binding.
    """
    reasons = {
        (said.binding, accept.code): accept.why
        for said in acceptances(context)
        for accept in said.accepts
        if in_range(accept.sglang, context.release)
    }
    for finding in findings:
        keys = [(owner, finding.code) for owner in _owners(finding)]
        why = next((reasons[key] for key in keys if key in reasons), None)
        if why is None or finding.severity is not Severity.WARNING:
            yield finding
        else:
            message = f"{finding.message} (accepted: {why})"
            yield replace(finding, severity=Severity.INFO, message=message, suggestion=None)


def unused_acceptances(
    context: Context, findings: Iterable[Finding], ignored: Callable[[str], bool]
) -> Iterator[Finding]:
    """Report each acceptance for this release that turns no warning into information.

    `findings` are what the rules said, before anything was accepted. Nothing is said of a binding
    that does not hold here, nor of one with an error: what is to be mended first may be why the
    accepted warning is not there. Nor of codes that this run ignores. That a code is never a
    warning is said of any binding.
    """
    if not context.claimed or context.reader is None:
        return
    heard = [(owner, finding) for finding in findings for owner in _owners(finding)]
    warned = {(owner, f.code) for owner, f in heard if f.severity is Severity.WARNING}
    errors = {(owner, f.code) for owner, f in heard if f.severity is Severity.ERROR}
    faulty = {owner for owner, _ in errors}
    for said in acceptances(context):
        for index, accept in enumerate(said.accepts):
            key = (said.binding, accept.code)
            if key in warned or ignored(accept.code):
                continue
            if _in_vain(accept) and in_range(accept.sglang, context.release):
                message, tip = _never(accept.code), "remove the entry"
            elif not _looked_at(context, said, accept):
                continue
            elif key in errors:
                message = f"{accept.code} is an error here, and errors are not accepted"
                tip = "mend what it says, and remove the entry"
            elif said.binding in faulty:
                continue
            else:
                message, tip = _idle(context, accept, warned)
            position = said.document.at(*said.path, index, "code")
            yield Finding.of(CODE, message, position, binding=said.binding or None, suggestion=tip)


def _owners(finding: Finding) -> tuple[str, ...]:
    """Return whose acceptances hold for a finding, by the name of `Acceptances`."""
    if finding.binding is None:
        return ("",)
    platform = finding.binding.startswith(PLATFORM)
    return (finding.binding, "") if platform else (finding.binding,)


def _in_vain(accept: Accept) -> bool:
    """Tell whether no release gives a warning of the accepted code; KA005 says what is no code."""
    return accept.code in CODES and CODES[accept.code].never_warns


def _never(code: str) -> str:
    """Return what to say of an acceptance that no release has a use for."""
    if CODES[code].severity is Severity.ERROR:
        return f"{code} is an error in every release, and errors are not accepted"
    return f"{code} is information in every release, and only warnings are accepted"


def _idle(context: Context, accept: Accept, warned: set[tuple[str, str]]) -> tuple[str, str]:
    """Return what to say of an acceptance that meets no warning, and what to do."""
    message = f"{accept.code} is accepted, and there is no such warning in sglang {context.release}"
    others = sorted({owner for owner, code in warned if code == accept.code and owner})
    if others:
        there = f"{accept.code} is said of {listed(others[:3])}: accept it there, or"
    else:
        there = "remove the entry, or"
    return message, f"{there} give it the `sglang` range of the releases in which it is said"


def _looked_at(context: Context, said: Acceptances, accept: Accept) -> bool:
    """Tell whether the rule of the accepted code had anything to look at in this release."""
    if accept.code not in CODES or not in_range(accept.sglang, context.release):
        return False  # KA005 speaks of codes that no rule has
    locked = context.lock is not None and context.release in context.lock.releases
    if accept.code in OF_THE_LOCK and not locked:
        return False
    if said.of is None:
        return True
    if accept.code == OF_LEFT_OUT:
        # Imported here: rules ask this module what is accepted.
        from kunlun_adapt.check.rules.excluded_but_there import left_out

        return any(left.binding.id == said.binding for left in left_out(context))
    return _holds(context, said.binding, said.of)


def _holds(context: Context, id: str, of: Hook | Bind) -> bool:
    """Tell whether a binding claims this release, and upstream has what it binds there."""
    ranges = [at.sglang for at in of.at] if isinstance(of, Hook) else [of.sglang]
    if not any(in_range(range, context.release) for range in ranges):
        return False
    for hook in context.hooks:
        if hook.binding.id == id:
            return isinstance(hook.symbol, Symbol) or not _upstreams(hook.at)
    return any(
        isinstance(kernel.symbol, Symbol) or not _upstreams(kernel.bind)
        for kernel in context.kernels
        if kernel.binding.id == id
    )


def _upstreams(at: HookAt | Bind) -> bool:
    return at.provided_by is None and at.package is None


def acceptances(context: Context) -> Iterator[Acceptances]:
    """Yield every list of accepted warnings in the workspace.

    Of all bindings: that one leaves the release out may be what is accepted.
    """
    yield Acceptances("", context.map.accepts, context.document, ("accepts",))
    for entry in context.catalog.hooks:
        where = (*entry.path, "accepts")
        yield Acceptances(entry.hook.id, entry.hook.accepts, entry.document, where, entry.hook)
    for recipe in context.operators:
        for id, indexes in bind_groups(recipe.model).items():
            for index in indexes:
                bind = recipe.model.binds[index]
                yield Acceptances(id, bind.accepts, recipe, ("binds", index, "accepts"), bind)

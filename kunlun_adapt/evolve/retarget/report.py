"""What `retarget` prints: for people, and as JSON for programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kunlun_adapt.check.wording import flow
from kunlun_adapt.diagnostics import ReleaseReport, Severity
from kunlun_adapt.evolve.retarget.result import Account, Outcome, Retargeted

TITLES: dict[Outcome, str] = {
    "carried": "carried: what is certain",
    "proposed": "proposed: likely, and for a person to decide",
    "left": "left: for a person to find",
}


def render(done: Retargeted, *, written: bool, lock_command: str | None) -> str:
    """Return the whole report as text."""
    through = f", through {', '.join(done.through)}" if done.through else ""
    lines = [f"sglang {done.start} to {done.release}{through}", ""]
    for outcome, title in TITLES.items():
        accounts = [a for a in done.of(outcome) if outcome != "carried" or not a.plain]
        if accounts:
            lines += [title, *(line for a in accounts for line in account_lines(a)), ""]
    plain = [a.binding for a in done.of("carried") if a.plain]
    if plain:
        lines += [f"carried by a longer range alone: {', '.join(plain)}", ""]
    review = [a for a in done.accounts if a.review and a.outcome in ("held", "carried")]
    if review:
        names = ", ".join(a.binding for a in review)
        lines += [f"to look at, since upstream's body is another one: {names}", ""]
    lines += _summary(done)
    lines += [
        "written" if written else "nothing is written",
        *([f"next: {lock_command}"] if lock_command and written else []),
    ]
    return "\n".join(lines) + "\n"


def account_lines(account: Account) -> list[str]:
    """Return what is to be said of one binding."""
    codes = f" {', '.join(account.codes)}" if account.codes else ""
    lines = [f"  {account.binding}{codes}  ({account.position.file}:{account.position.line})"]
    lines += [f"    {said}" for said in account.says]
    lines += [f"    evidence  {said}" for said in account.evidence]
    lines += [f"    note      {said}" for said in account.review]
    if account.confidence is not None and account.outcome != "left":
        lines.append(f"    counts on {account.confidence:.0%} at least, as measured")
    if account.added:
        lines.append(f"    add       {flow(account.added)}")
    for text, values in account.between if account.outcome != "left" else ():
        lines.append(f"    on the way {text}: {flow(values)}")
    if account.range is not None and account.outcome != "left":
        lines.append(f"    entry     - {flow(account.entry)}")
    if account.taken and account.outcome == "proposed":
        lines.append("    taken")
    return lines


def as_body(done: Retargeted, written: bool) -> dict[str, Any]:
    """Return the JSON body; its shape is documented in docs/json.md."""
    return {
        "release": done.release,
        "start": done.start,
        "through": list(done.through),
        "counts": done.counts,
        "accounts": [a.to_json() for a in done.accounts],
        "before": [_counted(r) for r in done.before],
        "after": [_counted(r) for r in done.after],
        "claim": {"before": done.claim[0], "after": done.claim[1]},
        "written": written,
        "patch": done.patch,
    }


def _counted(report: ReleaseReport) -> dict[str, Any]:
    return {
        "release": report.release,
        "errors": report.count(Severity.ERROR),
        "warnings": report.count(Severity.WARNING),
        "bindings": {
            "bound": report.bound,
            "planned": report.planned,
            "excluded": report.excluded,
        },
    }


def _summary(done: Retargeted) -> list[str]:
    counts = ", ".join(f"{count} {kind}" for kind, count in done.counts.items())
    lines = [f"{counts} of {len(done.accounts)}"]
    lines += _table("before", done.before) + _table("after", done.after)
    own, now = done.claim
    lines.append(f"the map claims {now}" + (f", before {own}" if now != own else ""))
    return lines


def _table(title: str, reports: Sequence[ReleaseReport]) -> list[str]:
    return [
        f"{title:<7} {r.release}: {r.count(Severity.ERROR)} errors, "
        f"{r.count(Severity.WARNING)} warnings, {r.bound} bound, {r.planned} planned"
        for r in reports
    ]

"""The Feature Diff as one HTML page that needs nothing else: no server, no script, no font."""

from __future__ import annotations

from pathlib import Path

from kunlun_adapt.evolve.diff.records import LANDINGS, Change, FeatureDiff, Risk
from kunlun_adapt.evolve.diff.text import about, code_size, counted, summary
from kunlun_adapt.evolve.page import render_page

_ROWS = {"+": "add", "-": "del", "@": "hunk", "\\": "note"}


def render_html(diff: FeatureDiff) -> str:
    """Return the page. What upstream and the documents say is escaped, and cannot run."""
    return render_page(
        Path(__file__).parent,
        diff=diff,
        summary=summary(diff),
        groups=[(key, LANDINGS[key], changes) for key, changes in diff.grouped().items()],
        risks=[risk.value for risk in Risk],
        statuses=sorted({change.status for change in diff.changes}),
        counted=counted,
        about=about,
        size=code_size,
        rows=code_rows,
        pieces=pieces,
    )


def pieces(text: str) -> list[tuple[bool, str]]:
    """Split what is to do into prose and code: what stands between ticks, and an entry of YAML."""
    if text.startswith("- {"):
        return [(True, text)]
    return [(number % 2 == 1, part) for number, part in enumerate(text.split("`")) if part]


def code_rows(change: Change) -> list[tuple[str, str]]:
    """Return each row of the code's diff with the class that it is shown in."""
    rows = change.code.split("\n") if change.code else []
    heads = 2
    return [
        ("head" if number < heads else _ROWS.get(row[:1], ""), row)
        for number, row in enumerate(rows)
    ]

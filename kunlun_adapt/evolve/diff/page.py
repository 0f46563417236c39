"""The Feature Diff as one HTML page that needs nothing else: no server, no script, no font."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

from kunlun_adapt.evolve.diff.records import LANDINGS, Change, FeatureDiff, Risk
from kunlun_adapt.evolve.diff.text import about, code_size, counted, summary

_HERE = Path(__file__).parent
TEMPLATE = "page.html.j2"
SCRIPT = "page.js"
STYLE = "page.css"

_ROWS = {"+": "add", "-": "del", "@": "hunk", "\\": "note"}


def render_html(diff: FeatureDiff) -> str:
    """Return the page. What upstream and the documents say is escaped, and cannot run."""
    # Imported here: the other formats do without it.
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_HERE),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    script = (_HERE / SCRIPT).read_text(encoding="utf-8")
    style = (_HERE / STYLE).read_text(encoding="utf-8")
    return environment.get_template(TEMPLATE).render(
        diff=diff,
        summary=summary(diff),
        groups=[(key, LANDINGS[key], changes) for key, changes in diff.grouped().items()],
        risks=[risk.value for risk in Risk],
        statuses=sorted({change.status for change in diff.changes}),
        counted=counted,
        about=about,
        size=code_size,
        rows=code_rows,
        script=script,
        style=style,
        policy=f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'",
    )


def code_rows(change: Change) -> list[tuple[str, str]]:
    """Return each row of the code's diff with the class that it is shown in."""
    rows = change.code.split("\n") if change.code else []
    heads = 2
    return [
        ("head" if number < heads else _ROWS.get(row[:1], ""), row)
        for number, row in enumerate(rows)
    ]


def _hash(text: str) -> str:
    """Return what a content security policy names an inline text by: only this one is let in."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()

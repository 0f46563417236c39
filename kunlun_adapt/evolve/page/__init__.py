"""Reports as HTML pages that need nothing else: no server, no script, no font.

All pages look alike and filter alike: `base.css` and `filter.js` are part of each.
"""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import Any

_HERE = Path(__file__).parent
TEMPLATE = "page.html.j2"
STYLE = "page.css"
"""What a report brings along, in a folder of its own."""


def render_page(folder: Path, **values: Any) -> str:
    """Return a report's page. What upstream and the documents say is escaped, and cannot run."""
    # Imported here: the other formats do without it.
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    script = (_HERE / "filter.js").read_text(encoding="utf-8")
    style = "".join(
        path.read_text(encoding="utf-8") for path in (_HERE / "base.css", folder / STYLE)
    )
    return environment.get_template(TEMPLATE).render(
        **values,
        script=script,
        style=style,
        policy=f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'",
    )


def _hash(text: str) -> str:
    """Return what a content security policy names an inline text by: only this one is let in."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()

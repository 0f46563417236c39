"""The formats of what is written as a report, and the options that choose one."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer


class Format(str, Enum):
    """How a report is written."""

    TEXT = "text"
    MARKDOWN = "markdown"
    JSON = "json"
    HTML = "html"


ENDINGS = {
    ".md": Format.MARKDOWN,
    ".json": Format.JSON,
    ".html": Format.HTML,
    ".txt": Format.TEXT,
    "": Format.TEXT,
}

ReportFormat = Annotated[
    Format | None,
    typer.Option(
        "--format",
        help="Output format. Default: by the ending of --output (.md, .json, .html), or text.",
        show_default=False,
    ),
]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        help="Write the result to this file, not to stdout.",
        show_default=False,
    ),
]


def format_for(given: Format | None, output: Path | None) -> Format:
    """Return the format that is given, else the one that the ending of the file names.

    Raises BadParameter for an ending that names none.
    """
    if given is not None or output is None:
        return given or Format.TEXT
    found = ENDINGS.get(output.suffix.lower())
    if found is None:
        known = ", ".join(filter(None, ENDINGS))
        raise typer.BadParameter(
            f"--output: {output.suffix} names no format ({known} do): give --format"
        )
    return found

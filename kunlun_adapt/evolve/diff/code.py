"""A readable diff of what a definition says in two releases."""

from __future__ import annotations

import difflib
import textwrap

from kunlun_adapt.upstream import Location

CUT = "\\ "
"""What a row begins with that stands for what is left out."""
MOST = 400
"""Lines of a diff that are kept."""
TOO_LONG = 10_000
"""Lines of two texts together, beyond which comparing them takes longer than reading them."""


def code_diff(old: str | None, new: str | None, before: Location, after: Location) -> str:
    """Return a unified diff with both places named; empty where there is nothing to show."""
    if old is None or new is None:
        return ""
    one, other = _lines(old), _lines(new)
    if len(one) + len(other) > TOO_LONG:
        return "\n".join([f"--- {before}", f"+++ {after}", f"{CUT}too long to be compared here"])
    head = (str(before), str(after))
    # Line numbers count from the file's first line, as an editor does.
    rows = list(difflib.unified_diff(one, other, *head, lineterm="", n=3))
    rows = [_shifted(row, before.line - 1, after.line - 1) for row in rows]
    if len(rows) > MOST:
        rows = [*rows[:MOST], f"{CUT}{len(rows) - MOST} more lines of the diff"]
    return "\n".join(rows)


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in textwrap.dedent(text).rstrip("\n").split("\n")]


def _shifted(row: str, old: int, new: int) -> str:
    """Return a row; of a hunk's head with the line numbers of the files."""
    if not row.startswith("@@ "):
        return row
    _, before, after, *rest = row.split(" ")
    return " ".join(["@@", _moved(before, old), _moved(after, new), *rest])


def _moved(span: str, by: int) -> str:
    start, comma, count = span[1:].partition(",")
    return f"{span[0]}{int(start) + by}{comma}{count}"

"""Texts from upstream and the documents in Markdown, where none of them may be markup."""

from __future__ import annotations

from html import escape

from kunlun_adapt.diagnostics.report import one_line


def plain(text: str) -> str:
    """Return a text that Markdown shows as it is."""
    shown = escape(one_line(text), quote=False)
    return "".join(f"\\{c}" if c in "\\`*_[]|#" else c for c in shown)


def code(text: str) -> str:
    """Return a text as code, in a line or in a table's cell."""
    shown = one_line(text)
    return f"`{shown}`" if "`" not in shown and "|" not in shown else plain(shown)

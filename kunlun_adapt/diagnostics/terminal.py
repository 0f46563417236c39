"""Findings on a terminal: grouped by file, coloured by severity, with a table at the end."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from kunlun_adapt.diagnostics.codes import CODES
from kunlun_adapt.diagnostics.finding import Finding
from kunlun_adapt.diagnostics.report import (
    ReleaseReport,
    closing_line,
    counted,
    one_line,
    summary_table,
)
from kunlun_adapt.diagnostics.severity import Severity

_COLOUR = {Severity.ERROR: "bold red", Severity.WARNING: "yellow", Severity.INFO: "cyan"}
_INDENT = 9
_COLUMN = {"errors": "bold red", "warnings": "yellow", "info": "cyan"}


def print_reports(
    console: Console,
    reports: Sequence[ReleaseReport],
    *,
    notes: Sequence[str] = (),
    infos: bool = True,
) -> None:
    """Print what `render_text` says, for people.

    Messages are wrapped between words. What is there to be copied stays on one line, which the
    terminal folds where it has to.
    """
    for report in reports:
        shown = [f for f in report.ordered if infos or f.severity is not Severity.INFO]
        if len(reports) > 1 and shown:
            console.rule(Text(f"sglang {report.release}", "bold"), align="left")
        for file, findings in groupby(shown, key=lambda f: f.position.file):
            console.print(Text(one_line(file), "bold underline"), soft_wrap=True)
            for finding in findings:
                _print_finding(console, finding)
            console.print()
    if any(r.findings for r in reports):
        console.print(_summary(reports))
    for report in reports:
        if not report.findings:
            console.print(Text(closing_line(report), "green"))
    if len(reports) == 1 and counted(reports[0]):
        console.print(Text(closing_line(reports[0])))
    for note in notes:
        console.print(Text(note, "dim"))


def _print_finding(console: Console, finding: Finding) -> None:
    """Print where and what, and below it both ends and the edit, each on one line to be copied."""
    said = Text()
    said.append(f"{finding.severity.value} {finding.code}", _COLOUR[finding.severity])
    said.append(f" ({CODES[finding.code].name})", "dim")
    said.append(f": {one_line(finding.message)}")
    place = f"{finding.position.line}:{finding.position.column}".rjust(_INDENT - 1)
    margin = Text.assemble((f"{place} ", "dim"))
    for line in _between_words(said, console.width - len(margin)):
        console.print(margin + line, soft_wrap=True)
        margin = Text(" " * len(margin))
    rows = (
        ("binding", finding.binding),
        ("upstream", finding.upstream),
        ("try", finding.suggestion),
    )
    for label, value in rows:
        if value:
            row = Text(" " * len(margin)).append(f"{label:<9}", "dim")
            row.append(one_line(str(value)), "green" if label == "try" else "")
            console.print(row, soft_wrap=True)


def _between_words(text: Text, width: int) -> Iterator[Text]:
    """Yield lines of whole words; one that is longer than a line has a line of its own."""
    breaks, used = [], 0
    for word in re.finditer(r"\S+\s*", text.plain):
        if used and used + cell_len(word[0].rstrip()) > width:
            breaks.append(word.start())
            used = 0
        used += cell_len(word[0])
    for line in text.divide(breaks):
        line.rstrip()
        yield line


def _summary(reports: Sequence[ReleaseReport]) -> Table:
    heading, *rows = summary_table(reports)
    table = Table(
        box=SIMPLE_HEAD, header_style="bold", show_edge=False, pad_edge=False, collapse_padding=True
    )
    for index, name in enumerate(heading):
        table.add_column(name, justify="right" if index else "left", overflow="fold")
    for row in rows:
        table.add_row(
            *(
                Text(cell, _COLUMN.get(name, "") if cell != "0" else "dim")
                for name, cell in zip(heading, row, strict=True)
            )
        )
    return table

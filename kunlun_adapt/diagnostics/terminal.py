"""Findings on a terminal: grouped by file, coloured by severity, with a table at the end."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from rich.box import SIMPLE_HEAD
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
_COLUMN = {"errors": "bold red", "warnings": "yellow", "info": "cyan"}


def print_reports(
    console: Console,
    reports: Sequence[ReleaseReport],
    *,
    notes: Sequence[str] = (),
    infos: bool = True,
) -> None:
    """Print what `render_text` says, for people. Lines are folded, never cut."""
    for report in reports:
        shown = [f for f in report.ordered if infos or f.severity is not Severity.INFO]
        if len(reports) > 1 and shown:
            console.rule(Text(f"sglang {report.release}", "bold"), align="left")
        for file, findings in groupby(shown, key=lambda f: f.position.file):
            console.print(Text(one_line(file), "bold underline"))
            for finding in findings:
                console.print(_block(finding))
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


def _block(finding: Finding) -> Table:
    """Return one finding: where, what, and below it both ends and the edit."""
    said = Text()
    said.append(f"{finding.severity.value} {finding.code}", _COLOUR[finding.severity])
    said.append(f" ({CODES[finding.code].name})", "dim")
    said.append(f": {one_line(finding.message)}")
    rows = (
        ("binding", finding.binding),
        ("upstream", finding.upstream),
        ("try", finding.suggestion),
    )
    for label, value in rows:
        if value:
            said.append(f"\n{label:<9}", "dim")
            said.append(one_line(str(value)), "green" if label == "try" else "")
    grid = Table.grid(padding=(0, 1))
    grid.add_column(justify="right", style="dim", no_wrap=True, min_width=8)
    grid.add_column(overflow="fold")
    grid.add_row(f"{finding.position.line}:{finding.position.column}", said)
    return grid


def _summary(reports: Sequence[ReleaseReport]) -> Table:
    heading, *rows = summary_table(reports)
    table = Table(box=SIMPLE_HEAD, header_style="bold")
    for index, name in enumerate(heading):
        table.add_column(name, justify="right" if index else "left")
    for row in rows:
        table.add_row(
            *(
                Text(cell, _COLUMN.get(name, "") if cell != "0" else "dim")
                for name, cell in zip(heading, row, strict=True)
            )
        )
    return table

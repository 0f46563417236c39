"""Findings per release as text, JSON and GitHub annotations."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kunlun_adapt.diagnostics.codes import CODES
from kunlun_adapt.diagnostics.finding import Finding
from kunlun_adapt.diagnostics.severity import Severity

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class ReleaseReport:
    """What `validate` found for one release; the counts are of bindings."""

    release: str
    bound: int
    planned: int
    excluded: int
    findings: tuple[Finding, ...]

    @property
    def ordered(self) -> list[Finding]:
        """The findings by file, line and column: the order in which every format shows them."""
        return sorted(self.findings, key=lambda f: f.sort_key)

    def count(self, severity: Severity) -> int:
        return sum(f.severity is severity for f in self.findings)

    def to_json(self) -> dict[str, object]:
        return {
            "release": self.release,
            "bindings": {"bound": self.bound, "planned": self.planned, "excluded": self.excluded},
            "findings": [f.to_json() for f in self.ordered],
        }


def worst(reports: Iterable[ReleaseReport]) -> Severity | None:
    """Return the gravest severity among all findings, or None when there is none."""
    severities = [f.severity for r in reports for f in r.findings]
    return max(severities) if severities else None


def render_json(reports: Sequence[ReleaseReport]) -> str:
    """Return the versioned JSON document (schema 1), ending in a newline."""
    body = {"schema": SCHEMA, "releases": [r.to_json() for r in reports]}
    return json.dumps(body, indent=2, ensure_ascii=False) + "\n"


def render_text(
    reports: Sequence[ReleaseReport], *, notes: Sequence[str] = (), infos: bool = True
) -> str:
    """Return plain text: findings per release, then a closing line, or a table for several.

    Without `infos` the findings that only inform are counted and not shown.
    """
    lines: list[str] = []
    for report in reports:
        shown = [f for f in report.ordered if infos or f.severity is not Severity.INFO]
        for finding in shown:
            lines.extend(_text_lines(finding))
        if len(reports) == 1 or shown:
            lines.append(closing_line(report))
    if len(reports) > 1:
        lines.extend([*([""] if lines else ()), *aligned(summary_table(reports))])
    lines.extend(notes)
    return "\n".join(lines) + "\n"


def summary_table(reports: Sequence[ReleaseReport]) -> list[tuple[str, ...]]:
    """Return the counts of each release, under a row of headings."""
    severities = (Severity.ERROR, Severity.WARNING, Severity.INFO)
    rows: list[tuple[str, ...]] = [
        ("release", "bound", "planned", "excluded", "errors", "warnings", "info")
    ]
    for report in reports:
        numbers = (report.bound, report.planned, report.excluded, *map(report.count, severities))
        rows.append((report.release, *map(str, numbers)))
    return rows


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows as aligned lines, the first column to the left and numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if index else cell.ljust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]


def _text_lines(finding: Finding) -> list[str]:
    name = CODES[finding.code].name
    lines = [
        f"{finding.position}: {finding.severity.value} {finding.code} ({name}): {finding.message}"
    ]
    if finding.binding:
        lines.append(f"    binding   {finding.binding}")
    if finding.upstream:
        lines.append(f"    upstream  {finding.upstream}")
    if finding.suggestion:
        lines.append(f"    try       {finding.suggestion}")
    return [one_line(line) for line in lines]


def one_line(text: str) -> str:
    """Show control characters: what a document says must not move a terminal's cursor."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def closing_line(report: ReleaseReport) -> str:
    """Say in one line how the release stands."""
    return (
        f"sglang {report.release}: {report.bound} bound, {report.planned} planned, "
        f"{report.excluded} excluded: {counted(report) or 'no findings'}"
    )


def counted(*reports: ReleaseReport) -> str:
    """Return the number of findings by severity, in words; "" where there is none."""
    plural = {Severity.ERROR: "errors", Severity.WARNING: "warnings", Severity.INFO: "info"}
    number = {s: sum(r.count(s) for r in reports) for s in plural}
    return ", ".join(f"{n} {s.value if n == 1 else plural[s]}" for s, n in number.items() if n)


def render_github(reports: Sequence[ReleaseReport]) -> str:
    """Return GitHub Actions annotations, one line per finding."""
    level = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}
    lines = []
    for report in reports:
        for f in report.ordered:
            text = f"[{report.release}] {f.message}"
            if f.suggestion:
                text += f"\ntry: {f.suggestion}"
            lines.append(
                f"::{level[f.severity]} file={_prop(f.position.file)},line={f.position.line},"
                f"col={f.position.column},title={f.code}::{_data(text)}"
            )
    return "".join(line + "\n" for line in lines)


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _prop(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")

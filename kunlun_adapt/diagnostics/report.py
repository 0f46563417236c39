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


def render_text(reports: Sequence[ReleaseReport], *, notes: Sequence[str] = ()) -> str:
    """Return plain text: per release one block of findings and one closing line."""
    lines: list[str] = []
    for report in reports:
        for finding in report.ordered:
            lines.extend(_text_lines(finding))
        lines.append(_closing_line(report))
    lines.extend(notes)
    return "\n".join(lines) + "\n"


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
    return [_one_line(line) for line in lines]


def _one_line(text: str) -> str:
    """Show control characters: what a document says must not move a terminal's cursor."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _closing_line(report: ReleaseReport) -> str:
    count = {s: sum(f.severity is s for f in report.findings) for s in Severity}
    found = ", ".join(
        f"{count[s]} {s.value}{'s' if count[s] != 1 else ''}"
        for s in (Severity.ERROR, Severity.WARNING, Severity.INFO)
        if count[s]
    )
    return (
        f"sglang {report.release}: {report.bound} bound, {report.planned} planned, "
        f"{report.excluded} excluded: {found or 'no findings'}"
    )


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

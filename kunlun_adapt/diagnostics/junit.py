"""Findings as JUnit XML, for build servers that draw tables of tests."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from xml.sax.saxutils import escape, quoteattr

from kunlun_adapt.diagnostics.codes import CODES
from kunlun_adapt.diagnostics.finding import Finding
from kunlun_adapt.diagnostics.report import ReleaseReport
from kunlun_adapt.diagnostics.severity import Severity

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that no XML document may hold, not even escaped."""


def render_junit(
    reports: Sequence[ReleaseReport], *, fail_on: Severity | None = Severity.ERROR
) -> str:
    """Return one test suite per release and one test case per finding.

    A finding at or above `fail_on` is a failure, as it is for the exit code; any other passes and
    says what it is in its output. A release without findings has one case that passes, since a
    suite without cases reads as one that did not run.
    """
    suites = [_suite(report, fail_on) for report in reports]
    failures = sum(_fails(f, fail_on) for r in reports for f in r.findings)
    tests = sum(max(len(r.findings), 1) for r in reports)
    lines = [
        '<?xml version="1.0" encoding="utf-8"?>',
        f'<testsuites name="kunlun-adapt validate" tests="{tests}" failures="{failures}" '
        'errors="0">',
        *(line for suite in suites for line in suite),
        "</testsuites>",
    ]
    return "\n".join(lines) + "\n"


def _suite(report: ReleaseReport, fail_on: Severity | None) -> Iterator[str]:
    failures = sum(_fails(f, fail_on) for f in report.findings)
    tests = max(len(report.findings), 1)
    name = _attribute(f"sglang {report.release}")
    yield f'  <testsuite name={name} tests="{tests}" failures="{failures}" errors="0" skipped="0">'
    yield "    <properties>"
    for key in ("bound", "planned", "excluded"):
        yield f'      <property name="{key}" value="{getattr(report, key)}"/>'
    for severity in (Severity.ERROR, Severity.WARNING, Severity.INFO):
        yield f'      <property name="{severity.value}" value="{report.count(severity)}"/>'
    yield "    </properties>"
    for finding in report.ordered:
        yield from _case(finding, _fails(finding, fail_on))
    if not report.findings:
        yield f'    <testcase classname={name} name="no findings"/>'
    yield "  </testsuite>"


def _case(finding: Finding, fails: bool) -> Iterator[str]:
    name = CODES[finding.code].name
    title = " ".join(filter(None, (finding.code, name, finding.binding, str(finding.position))))
    text = "\n".join(
        (
            f"{finding.position}: {finding.severity.value} {finding.code} ({name}): "
            f"{finding.message}",
            *([f"binding: {finding.binding}"] if finding.binding else ()),
            *([f"target: {finding.target}"] if finding.target else ()),
            *([f"upstream: {finding.upstream}"] if finding.upstream else ()),
            *([f"try: {finding.suggestion}"] if finding.suggestion else ()),
        )
    )
    yield (
        f"    <testcase classname={_attribute(finding.position.file)} name={_attribute(title)} "
        f"file={_attribute(finding.position.file)} line={_attribute(str(finding.position.line))}>"
    )
    if fails:
        message = _attribute(finding.message)
        yield f'      <failure type="{finding.code}" message={message}>{_text(text)}</failure>'
    else:
        yield f"      <system-out>{_text(text)}</system-out>"
    yield "    </testcase>"


def _fails(finding: Finding, fail_on: Severity | None) -> bool:
    return fail_on is not None and finding.severity >= fail_on


def _text(text: str) -> str:
    return escape(_tame(text))


def _attribute(text: str) -> str:
    return quoteattr(_tame(text))


def _tame(text: str) -> str:
    return _NOT_XML.sub(lambda found: found[0].encode("unicode_escape").decode(), text)

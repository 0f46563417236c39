"""Each code fires on its example: at the right node, with the edit that mends it."""

from __future__ import annotations

from pathlib import Path

import pytest

from kunlun_adapt.diagnostics import CODES, ReleaseReport, render_text
from tests.check.all_examples import EXAMPLES
from tests.check.bench import Bench

PAGES = Path(__file__).resolve().parents[2] / "docs" / "codes"


def test_every_code_has_an_example_and_a_page() -> None:
    assert sorted(EXAMPLES) == sorted(CODES)
    pages = sorted(path.stem for path in PAGES.glob("KA*.md"))
    assert pages == sorted(CODES)


@pytest.mark.parametrize("code", sorted(EXAMPLES))
def test_the_code_fires_at_the_right_node(code: str, bench: Bench) -> None:
    example = EXAMPLES[code]
    findings = [f for f in example.findings(bench) if f.code not in example.beside]
    assert [f.code for f in findings] == [code], [f.message for f in findings]
    finding = findings[0]
    assert str(finding.position) == example.place(bench)
    assert finding.severity is CODES[code].severity
    if example.suggests is not None:
        assert example.suggests in (finding.suggestion or "")


@pytest.mark.parametrize("code", sorted(EXAMPLES))
def test_the_page_shows_what_is_really_said(code: str, bench: Bench) -> None:
    text = (PAGES / f"{code}.md").read_text(encoding="utf-8")
    assert text.startswith(f"# {code}: {CODES[code].name}\n")
    example = EXAMPLES[code]
    findings = tuple(f for f in example.findings(bench) if f.code not in example.beside)
    report = ReleaseReport("0.5.19", 0, 0, 0, findings)
    said = render_text([report]).rsplit("sglang 0.5.19:", 1)[0]
    assert f"```text\n{said}```" in text
    for heading in ("## What it means", "## Example", "## Why it matters", "## How to mend it"):
        assert heading in text


def test_the_index_lists_every_code() -> None:
    index = (PAGES / "README.md").read_text(encoding="utf-8")
    for code in CODES.values():
        assert f"| [{code.code}]({code.code}.md) | {code.name} | {code.severity.value} |" in index

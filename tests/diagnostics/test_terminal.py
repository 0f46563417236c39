from __future__ import annotations

import io

import pytest
from rich.console import Console

from kunlun_adapt.diagnostics import Finding, Position, ReleaseReport, Severity
from kunlun_adapt.diagnostics.terminal import print_reports
from tests.diagnostics.test_report import CLEAN, REPORT


def shown(reports: list[ReleaseReport], *, width: int = 100, infos: bool = True) -> str:
    console = Console(file=io.StringIO(), width=width, highlight=False, color_system=None)
    print_reports(console, reports, notes=["a note"], infos=infos)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert isinstance(text, str)
    return text


def test_findings_are_grouped_by_file_under_their_release() -> None:
    lines = [line.strip() for line in shown([REPORT, CLEAN]).splitlines()]
    order = [
        next(i for i, line in enumerate(lines) if line.startswith(start))
        for start in (
            "sglang 0.5.19", "operator_recipes/x.yaml", "12:5 error KA102", "platform_map.yaml",
            "2:9 info KA008", "3:1 warning KA010", "release", "0.5.19", "0.5.23", "a note",
        )
    ]  # fmt: skip
    assert order == sorted(order)
    assert lines.count("platform_map.yaml") == 1
    table = next(line.split() for line in lines if line.startswith("0.5.19"))
    assert table == ["0.5.19", "4", "1", "2", "1", "1", "1"]


def test_a_clean_release_is_one_calm_line() -> None:
    lines = shown([CLEAN]).splitlines()
    assert lines == ["sglang 0.5.23: 7 bound, 0 planned, 0 excluded: no findings", "a note"]


def test_infos_may_be_left_to_their_count() -> None:
    text = shown([REPORT], infos=False)
    assert "KA008" not in text and "1 info" in text and "KA010" in text


@pytest.mark.parametrize("width", [40, 80, 200])
def test_nothing_is_cut_on_a_narrow_terminal(width: int) -> None:
    text = shown([REPORT], width=width)
    assert max(map(len, text.splitlines())) <= width
    words = text.split()
    for finding in REPORT.findings:
        for word in (finding.code, *finding.message.split()):
            assert word in words or word in "".join(words)


def test_no_text_of_a_document_is_markup_or_moves_the_cursor() -> None:
    hostile = "[bold]x[/nope]\x1b[2J\r"
    finding = Finding("KA001", Severity.ERROR, hostile, Position(hostile, 1, 1), suggestion=hostile)
    text = shown([ReleaseReport("1", 0, 0, 0, (finding,))])
    assert "\x1b" not in text and "\r" not in text
    assert text.count("[bold]x[/nope]\\x1b[2J\\r") == 3

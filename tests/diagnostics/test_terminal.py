from __future__ import annotations

import io

import pytest
from rich.console import Console

from kunlun_adapt.diagnostics import (
    Finding,
    Position,
    ReleaseReport,
    Severity,
    UpstreamPosition,
)
from kunlun_adapt.diagnostics.terminal import print_reports
from tests.diagnostics.test_report import CLEAN, FULL, REPORT


def shown(reports: list[ReleaseReport], *, width: int = 100, infos: bool = True) -> str:
    stream = io.StringIO()
    console = Console(file=stream, width=width, highlight=False, color_system=None)
    print_reports(console, reports, notes=["a note"], infos=infos)
    return stream.getvalue()


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
    labels = ("binding ", "upstream ", "try ")
    prose = [line for line in text.splitlines() if not line.strip().startswith(labels)]
    assert max(map(len, prose)) <= width
    words = text.split()
    for finding in REPORT.findings:
        for word in (finding.code, *finding.message.split()):
            assert word in words or word in "".join(words)


def test_what_is_to_be_pasted_stays_on_one_line() -> None:
    target = "sglang.srt.layers.attention.triton_ops.prefill_attention.context_attention_fwd"
    edit = f'{{sglang: ">=0.5.19", target: {target}}} # or an earlier release of the same symbol'
    finding = Finding(
        "KA102",
        Severity.ERROR,
        f"the release has no {target}: 移动 {'moved ' * 12}",
        Position("operator_recipes/attention/context.yaml", 120, 5),
        binding="context_attention_fwd/prefill_attention.context_attention_fwd",
        upstream=UpstreamPosition("sglang/srt/layers/attention/triton_ops/prefill_attention.py", 9),
        suggestion=edit,
    )
    lines = shown([ReleaseReport("0.5.19", 1, 0, 0, (finding,))], width=40).splitlines()
    assert f"         try      {edit}" in lines
    assert f"         binding  {finding.binding}" in lines
    assert f"         upstream {finding.upstream}" in lines
    assert f"         {target}:" in lines, "a long word has a line of its own"
    said = lines[1 : lines.index(f"         binding  {finding.binding}")]
    assert said[0] == "   120:5 error KA102 (target-moved): the"
    assert " ".join(line[9:] for line in said[1:]).split() == [
        *("release", "has", "no", f"{target}:", "移动"),
        *["moved"] * 12,
    ]
    assert all(len(line) <= 40 for line in said if target not in line)


def test_the_table_is_whole_on_sixty_columns() -> None:
    lines = [line.split() for line in shown([REPORT, CLEAN], width=60).splitlines()]
    heading = ["release", "bound", "planned", "excluded", "errors", "warnings", "info"]
    assert heading in lines and ["0.5.19", "4", "1", "2", "1", "1", "1"] in lines


def test_only_the_place_is_dim() -> None:
    stream = io.StringIO()
    console = Console(file=stream, width=60, force_terminal=True, color_system="standard")
    print_reports(console, [ReleaseReport("1", 0, 0, 0, (FULL,))])
    assert "\x1b[2m    12:5 \x1b[0m\x1b[1;31merror KA102\x1b[0m" in stream.getvalue()
    assert "\x1b[0m: sglang.a.b moved to" in stream.getvalue()


def test_no_text_of_a_document_is_markup_or_moves_the_cursor() -> None:
    hostile = "[bold]x[/nope]\x1b[2J\r"
    finding = Finding("KA001", Severity.ERROR, hostile, Position(hostile, 1, 1), suggestion=hostile)
    text = shown([ReleaseReport("1", 0, 0, 0, (finding,))])
    assert "\x1b" not in text and "\r" not in text
    assert text.count("[bold]x[/nope]\\x1b[2J\\r") == 3

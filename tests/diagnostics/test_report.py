from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from kunlun_adapt.diagnostics import (
    Finding,
    Position,
    ReleaseReport,
    Severity,
    UpstreamPosition,
    render_github,
    render_json,
    render_text,
    worst,
)

FULL = Finding(
    code="KA102",
    severity=Severity.ERROR,
    message="sglang.a.b moved to sglang.c.b — 移动",
    position=Position("operator_recipes/x.yaml", 12, 5),
    binding="silu_and_mul/b",
    target="sglang.a.b",
    upstream=UpstreamPosition("sglang/c.py", 44),
    suggestion="target: sglang.c.b",
)
BARE = Finding("KA010", Severity.WARNING, "no why", Position("platform_map.yaml", 3, 1))
NOTE = Finding("KA008", Severity.INFO, "left out", Position("platform_map.yaml", 2, 9))
REPORT = ReleaseReport("0.5.19", 4, 1, 2, (BARE, FULL, NOTE))
CLEAN = ReleaseReport("0.5.23", 7, 0, 0, ())

JSON = """\
{
  "schema": 1,
  "releases": [
    {
      "release": "0.5.19",
      "bindings": {
        "bound": 4,
        "planned": 1,
        "excluded": 2
      },
      "findings": [
        {
          "code": "KA102",
          "severity": "error",
          "message": "sglang.a.b moved to sglang.c.b — 移动",
          "binding": "silu_and_mul/b",
          "target": "sglang.a.b",
          "file": "operator_recipes/x.yaml",
          "line": 12,
          "column": 5,
          "upstream": {
            "file": "sglang/c.py",
            "line": 44
          },
          "suggestion": "target: sglang.c.b"
        },
        {
          "code": "KA008",
          "severity": "info",
          "message": "left out",
          "binding": null,
          "target": null,
          "file": "platform_map.yaml",
          "line": 2,
          "column": 9,
          "upstream": null,
          "suggestion": null
        },
        {
          "code": "KA010",
          "severity": "warning",
          "message": "no why",
          "binding": null,
          "target": null,
          "file": "platform_map.yaml",
          "line": 3,
          "column": 1,
          "upstream": null,
          "suggestion": null
        }
      ]
    },
    {
      "release": "0.5.23",
      "bindings": {
        "bound": 7,
        "planned": 0,
        "excluded": 0
      },
      "findings": []
    }
  ]
}
"""

TEXT = """\
operator_recipes/x.yaml:12:5: error KA102 (target-moved): sglang.a.b moved to sglang.c.b — 移动
    binding   silu_and_mul/b
    upstream  sglang/c.py:44
    try       target: sglang.c.b
platform_map.yaml:2:9: info KA008 (range-gap): left out
platform_map.yaml:3:1: warning KA010 (missing-why): no why
sglang 0.5.19: 4 bound, 1 planned, 2 excluded: 1 error, 1 warning, 1 info

release  bound  planned  excluded  errors  warnings  info
0.5.19       4        1         2       1         1     1
0.5.23       7        0         0       0         0     0
one note
"""

GITHUB = """\
::error file=operator_recipes/x.yaml,line=12,col=5,title=KA102::[0.5.19] sglang.a.b moved to \
sglang.c.b — 移动%0Atry: target: sglang.c.b
::notice file=platform_map.yaml,line=2,col=9,title=KA008::[0.5.19] left out
::warning file=platform_map.yaml,line=3,col=1,title=KA010::[0.5.19] no why
"""


def test_the_json_is_exactly_this() -> None:
    assert render_json([REPORT, CLEAN]) == JSON


def test_the_text_is_exactly_this() -> None:
    assert render_text([REPORT, CLEAN], notes=["one note"]) == TEXT


def test_the_annotations_are_exactly_these() -> None:
    assert render_github([REPORT, CLEAN]) == GITHUB
    assert render_github([CLEAN]) == ""


def test_the_closing_line_counts_in_plurals() -> None:
    report = ReleaseReport("1", 0, 0, 0, (FULL, FULL, BARE))
    assert render_text([report]).endswith("excluded: 2 errors, 1 warning\n")
    report = ReleaseReport("1", 0, 0, 0, (BARE, BARE, NOTE, NOTE))
    assert render_text([report]).endswith("excluded: 2 warnings, 2 info\n")


def test_one_release_without_findings_is_one_line() -> None:
    assert render_text([CLEAN]) == "sglang 0.5.23: 7 bound, 0 planned, 0 excluded: no findings\n"


def test_infos_may_be_left_to_their_count() -> None:
    text = render_text([REPORT], infos=False)
    assert "KA008" not in text and "KA102" in text and text.endswith("1 warning, 1 info\n")
    only_infos = ReleaseReport("1", 0, 0, 0, (NOTE,))
    assert render_text([only_infos, CLEAN], infos=False).splitlines() == [
        "release  bound  planned  excluded  errors  warnings  info",
        "1            0        0         0       0         0     1",
        "0.5.23       7        0         0       0         0     0",
    ]


def test_the_order_of_findings_does_not_depend_on_who_found_first() -> None:
    turned = ReleaseReport("0.5.19", 4, 1, 2, (NOTE, FULL, BARE))
    for render in (render_json, render_text, render_github):
        assert render([turned]) == render([REPORT])  # type: ignore[operator]


def test_the_worst_is_over_all_releases() -> None:
    assert worst([]) is None
    assert worst([CLEAN]) is None
    assert worst([ReleaseReport("1", 0, 0, 0, (NOTE,)), CLEAN]) is Severity.INFO
    assert worst([ReleaseReport("1", 0, 0, 0, (NOTE, BARE))]) is Severity.WARNING
    assert worst([CLEAN, REPORT]) is Severity.ERROR


@given(st.text(max_size=30), st.text(max_size=30))
def test_no_text_of_a_document_breaks_out_of_its_line(message: str, file: str) -> None:
    finding = Finding("KA001", Severity.ERROR, message, Position(file, 1, 1), suggestion=message)
    report = ReleaseReport("1", 0, 0, 0, (finding,))
    text = render_text([report])
    assert len(text.splitlines()) == (3 if message else 2)
    assert all(line.isprintable() for line in text.splitlines())
    annotation = render_github([report])
    assert annotation.count("\n") == 1 and "\r" not in annotation
    head = annotation.partition("::")[2].partition("::")[0]
    assert head.count(",") == 3
    document = json.loads(render_json([report]))
    assert document["releases"][0]["findings"][0]["message"] == message

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kunlun_adapt.diagnostics import Finding, Position, ReleaseReport, Severity
from kunlun_adapt.diagnostics.junit import render_junit
from tests.diagnostics.test_report import CLEAN, REPORT


def parse(text: str) -> ElementTree.Element:
    return ElementTree.fromstring(text.encode("utf-8"))


def test_a_suite_per_release_and_a_case_per_finding() -> None:
    root = parse(render_junit([REPORT, CLEAN]))
    assert root.attrib["tests"] == "4" and root.attrib["failures"] == "1"
    first, second = root
    assert first.attrib["name"] == "sglang 0.5.19"
    properties = {p.attrib["name"]: p.attrib["value"] for p in first.iter("property")}
    assert properties == {
        "bound": "4", "planned": "1", "excluded": "2", "error": "1", "warning": "1", "info": "1",
    }  # fmt: skip
    failed, *passed = first.iter("testcase")
    assert failed.attrib["classname"] == "operator_recipes/x.yaml" and failed.attrib["line"] == "12"
    (failure,) = failed
    assert failure.attrib["type"] == "KA102"
    assert "try: target: sglang.c.b" in (failure.text or "")
    assert [[child.tag for child in case] for case in passed] == [["system-out"], ["system-out"]]
    assert [case.attrib["name"] for case in second.iter("testcase")] == ["no findings"]


@pytest.mark.parametrize(
    ("fail_on", "failures"),
    [(None, 0), (Severity.ERROR, 1), (Severity.WARNING, 2), (Severity.INFO, 3)],
)
def test_failures_are_what_the_exit_code_counts(fail_on: Severity | None, failures: int) -> None:
    root = parse(render_junit([REPORT], fail_on=fail_on))
    assert len(list(root.iter("failure"))) == failures == int(root[0].attrib["failures"])


@given(st.text(max_size=30), st.text(max_size=30))
def test_any_text_of_a_document_is_well_formed(message: str, file: str) -> None:
    finding = Finding("KA001", Severity.ERROR, message, Position(file, 1, 1), suggestion=message)
    root = parse(render_junit([ReleaseReport("1", 0, 0, 0, (finding,))]))
    assert len(list(root.iter("failure"))) == 1


@pytest.mark.parametrize(
    "hostile", ["]]>", "<x a='b\"'>&", "\x00\x1b[31m", "\ud800", "\ufffe", "a\r\nb"]
)
def test_hostile_characters(hostile: str) -> None:
    finding = Finding("KA001", Severity.ERROR, hostile, Position(hostile, 1, 1), binding=hostile)
    root = parse(render_junit([ReleaseReport("1", 0, 0, 0, (finding,))]))
    (failure,) = root.iter("failure")
    printable = hostile.encode("ascii", "ignore").decode()
    if printable.isprintable():
        assert printable in failure.attrib["message"]

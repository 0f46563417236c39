from __future__ import annotations

import pytest

from kunlun_adapt.diagnostics import CODES, Finding, Position, ReleaseReport
from kunlun_adapt.diagnostics.selection import BLOCKING, Selection, UnknownCode


def kept(select: list[str], ignore: list[str]) -> set[str]:
    selection = Selection.of(select, ignore)
    return {code for code in CODES if selection.keeps(code)}


def beginning(*prefixes: str) -> set[str]:
    return {code for code in CODES if code.startswith(prefixes)}


def test_without_selectors_all_are_kept() -> None:
    assert kept([], []) == set(CODES)


@pytest.mark.parametrize(
    ("select", "ignore", "wanted"),
    [
        (["KA1"], [], beginning("KA1")),
        (["ka101", "KA20"], [], {"KA101"} | beginning("KA20")),
        (["KA101, KA102"], [], {"KA101", "KA102"}),
        (["KA1"], ["KA101"], beginning("KA1") - {"KA101"}),
        (["KA101"], ["KA1"], {"KA101"}),
        (["KA101"], ["KA101"], set()),
    ],
)
def test_the_longer_selector_wins(select: list[str], ignore: list[str], wanted: set[str]) -> None:
    assert kept(select, ignore) - BLOCKING == wanted - BLOCKING


def test_what_hides_other_findings_stays_unless_it_is_ignored() -> None:
    assert kept(["KA4"], []) == beginning("KA4") | BLOCKING
    assert kept(["KA4"], ["KA002"]) == beginning("KA4") | (BLOCKING - {"KA002"})
    assert kept([], ["KA0"]) == set(CODES) - beginning("KA0")


@pytest.mark.parametrize(
    "text", ["KA9", "KA", "KA1O5", "E501", "", "KA1,", "KA1011", "target-missing"]
)
def test_what_stands_for_no_code(text: str) -> None:
    with pytest.raises(UnknownCode):
        Selection.of([text])
    with pytest.raises(UnknownCode):
        Selection.of((), [text])


def test_a_report_keeps_its_counts() -> None:
    place = Position("platform_map.yaml", 1, 1)
    report = ReleaseReport(
        "0.5.19", 1, 2, 3, (Finding.of("KA101", "a", place), Finding.of("KA401", "b", place))
    )
    narrowed = Selection.of(["KA4"]).of_report(report)
    assert [f.code for f in narrowed.findings] == ["KA401"]
    assert (narrowed.bound, narrowed.planned, narrowed.excluded) == (1, 2, 3)

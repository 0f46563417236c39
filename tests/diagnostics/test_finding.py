from __future__ import annotations

import ast
import itertools
from pathlib import Path

import pytest

from kunlun_adapt.diagnostics import (
    CODES,
    AdaptError,
    Finding,
    Position,
    Severity,
    UpstreamPosition,
)

PACKAGE = Path(__file__).resolve().parents[2] / "kunlun_adapt"


def test_severities_are_ordered_by_gravity() -> None:
    order = [Severity.INFO, Severity.WARNING, Severity.ERROR]
    for chosen in itertools.permutations(order):
        assert sorted(chosen) == order
        assert max(chosen) is Severity.ERROR
    for (i, a), (j, b) in itertools.product(enumerate(order), repeat=2):
        assert (a < b) == (i < j)
        assert (a <= b) == (i <= j)
        assert (a >= b) == (i >= j)
    assert [s.value for s in order] == ["info", "warning", "error"]


def test_positions_sort_by_file_then_line_then_column() -> None:
    places = [Position("b", 1, 1), Position("a", 10, 1), Position("a", 9, 2), Position("a", 9, 1)]
    assert sorted(places) == list(reversed(places))
    assert str(places[1]) == "a:10:1"
    assert str(UpstreamPosition("sglang/x.py", 7)) == "sglang/x.py:7"


def test_findings_sort_by_place_then_code_then_message() -> None:
    def finding(line: int, code: str, message: str) -> Finding:
        return Finding(code, Severity.ERROR, message, Position("a", line, 1))

    wanted = [
        finding(2, "KA001", "a"), finding(2, "KA001", "b"), finding(2, "KA002", "a"),
        finding(10, "KA001", "a"),
    ]  # fmt: skip
    turned = wanted[::-1]
    assert sorted(turned, key=lambda f: f.sort_key) == wanted


def test_a_finding_takes_its_severity_from_its_code() -> None:
    place = Position("a", 1, 1)
    assert Finding.of("KA001", "m", place).severity is Severity.ERROR
    assert Finding.of("KA010", "m", place).severity is Severity.WARNING
    given = Finding.of("KA001", "m", place, severity=Severity.INFO, upstream=Position("b", 7, 1))
    assert given.severity is Severity.INFO
    assert given.upstream == UpstreamPosition("b", 7)
    with pytest.raises(AttributeError):
        given.message = "x"  # type: ignore[misc]


def test_codes_have_their_form_and_one_name_each() -> None:
    for key, code in CODES.items():
        assert key == code.code
        assert key[:2] == "KA" and key[2:].isdigit() and len(key) == 5
        assert code.page == f"docs/codes/{key}.md"
        assert code.meaning and code.name == code.name.lower() and " " not in code.name
    assert len({c.name for c in CODES.values()}) == len(CODES)


def test_no_module_speaks_of_a_code_that_does_not_exist() -> None:
    unknown = []
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            text = node.value if isinstance(node, ast.Constant) else None
            is_code = isinstance(text, str) and len(text) == 5 and text[:2] == "KA"
            if is_code and text not in CODES:
                unknown.append(f"{path.name}: {text}")
    assert unknown == []


def test_an_error_carries_what_to_do_next() -> None:
    error = AdaptError("it is broken", "mend it")
    assert (str(error), error.message, error.hint) == ("it is broken", "it is broken", "mend it")
    assert AdaptError("x").hint is None

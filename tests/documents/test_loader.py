from __future__ import annotations

import math
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from kunlun_adapt.diagnostics import Finding
from kunlun_adapt.documents import RawDocument, load_bytes, load_file, loader, resolve_scalar
from kunlun_adapt.documents.loader import MAX_BYTES, MAX_DEPTH, MAX_NODES

ROOT = Path(__file__).resolve().parents[2]


def load(text: str | bytes) -> tuple[list[RawDocument], list[Finding]]:
    raw = text.encode() if isinstance(text, str) else text
    return load_bytes(raw, "map.yaml")


def one_fault(text: str | bytes) -> Finding:
    documents, findings = load(text)
    assert documents == []
    assert len(findings) == 1, findings
    assert findings[0].code == "KA001"
    return findings[0]


def place(finding: Finding) -> tuple[int, int]:
    return finding.position.line, finding.position.column


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("on", "on"), ("yes", "yes"), ("No", "No"), ("12:30", "12:30"), ("0b1", "0b1"),
        ("1_000", "1_000"), ("2026-11-29", "2026-11-29"), ("=", "="),
        ("true", True), ("FALSE", False), ("~", None), ("null", None), ("", None), ("Null", None),
        ("0", 0), ("-7", -7), ("+7", 7), ("007", 7), ("0o17", 15), ("0x1F", 31),
        ("1e3", 1000.0), ("2e-2", 0.02), (".5", 0.5), ("5.", 5.0), ("-.5e1", -5.0),
        (".inf", math.inf), ("-.INF", -math.inf), ("+.inf", math.inf), ("--.inf", "--.inf"),
        ("٣", "٣"), ("1e", "1e"), (".", "."), ("0o8", "0o8"), ("0x", "0x"),
    ],
)  # fmt: skip
def test_plain_scalars_follow_the_core_schema(text: str, value: object) -> None:
    found = resolve_scalar(text)
    assert found == value
    assert type(found) is type(value)


def test_nan_is_a_number_and_absurd_digits_are_text() -> None:
    found = resolve_scalar(".nan")
    assert isinstance(found, float) and math.isnan(found)
    for text in ("9" * 5000, "0x" + "f" * 5000, "0o" + "7" * 5000, "9" * 5000 + ".0"):
        assert resolve_scalar(text) == text


def test_quotes_and_block_scalars_are_text() -> None:
    documents, findings = load("a: '1'\nb: \"true\"\nc: |\n  5\nd: >-\n  null\n")
    assert findings == []
    assert documents[0].data == {"a": "1", "b": "true", "c": "5\n", "d": "null"}


def test_positions_count_characters_from_one() -> None:
    text = "# \tTab, 注释, 𝔘\n键: {𝔘: 1, b: [甲, 乙]}\n𝔘𝔘: 值\n"
    (document,), findings = load(text)
    assert findings == []
    lines = text.split("\n")

    def at(line: int, what: str) -> tuple[int, int]:
        return line, lines[line - 1].index(what) + 1

    def found(*path: str | int) -> tuple[int, int]:
        position = document.positions[path]
        return position.line, position.column

    assert found("键") == at(2, "{")
    assert found("键", "𝔘") == at(2, "1")
    assert found("键", "b", 1) == at(2, "乙")
    assert found("𝔘𝔘") == at(3, "值")
    key = document.key_at("键", "b")
    assert (key.line, key.column) == at(2, "b")


def test_positions_survive_windows_line_ends_and_a_byte_order_mark() -> None:
    (document,), findings = load(b"\xef\xbb\xbfa: 1\r\nb:\r\n  c: 2\r\n")
    assert findings == []
    assert document.data == {"a": 1, "b": {"c": 2}}
    assert (document.at("b", "c").line, document.at("b", "c").column) == (3, 6)
    assert (document.at("a").line, document.at("a").column) == (1, 4)


def test_a_path_without_a_position_falls_back_to_its_nearest_ancestor() -> None:
    (document,), _ = load("x:\n  y: 1\n")
    assert document.at("x", "z", 3) == document.at("x")
    assert document.key_at("x", "z") == document.at("x")


@pytest.mark.parametrize(
    ("text", "line", "column", "says"),
    [
        ("a:\n\tb: 1\n", 2, 1, "indent with spaces"),
        ("a: b: c\n", 1, 5, "in quotes"),
        ("a: @b\n", 1, 4, "in quotes"),
        ("a: %b\n", 1, 4, "put the text in quotes"),
        ("%YAML 9.9\n---\na: 1\n", 1, 1, "remove the line"),
        ("%FOO bar\n---\na: 1\n", 1, 5, "remove the line"),
        ("a: *nothing\n", 1, 4, "undefined alias"),
        ("a: &x 1\nb: &x 2\n", 2, 4, "already set"),
        ("a: 1\na: 2\n", 2, 1, "already given in line 1"),
        ("m: {k: 1, k: 2}\n", 1, 11, "key 'k' is already given"),
        ("? [1, 2]\n: x\n", 1, 3, "a key must be plain text"),
        ("{? {a: 1} : x}\n", 1, 4, "a key must be plain text"),
        ("b: &b {x: 1}\na:\n  <<: *b\n", 3, 3, "no merge key"),
        ("a: !!str 5\n", 1, 4, "tag 'tag:yaml.org,2002:str'"),
        ("a: !!python/object/apply:os.system [x]\n", 1, 4, "is not allowed"),
        ("a: ! 5\n", 1, 4, "tag '!'"),
        ("a: !x {b: 1}\n", 1, 4, "tag '!x'"),
        ("a: 'x\nb: 1\n", 1, 4, "close the quote"),
        ("a: [1,\nb: 2", 2, 5, "did not find expected"),
        ("a: \x00\n", 1, 4, "U+0000"),
        ("甲: 1 # \x07\n", 1, 8, "U+0007"),
        ("# hidden \u2028a: 1\nb: 1\n", 1, 10, "U+2028"),
        ("a: 1\n# \x85b: 1\n", 2, 3, "U+0085"),
    ],
)
def test_each_fault_is_found_at_its_place(text: str, line: int, column: int, says: str) -> None:
    finding = one_fault(text)
    assert says in f"{finding.message}; {finding.suggestion}"
    assert place(finding) == (line, column)


def test_a_quoted_merge_key_is_a_key_like_any_other() -> None:
    (document,), findings = load('"<<": 1\n')
    assert findings == []
    assert document.data == {"<<": 1}


def test_bytes_that_are_not_utf8_are_found_by_character() -> None:
    finding = one_fault("a: 1\n键: ".encode() + b"\xff\n")
    assert place(finding) == (2, 4)
    assert "UTF-8" in finding.message
    assert "UTF-8" in one_fault("a: 1".encode("utf-16")).message


@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment\n", "---\n", "---\n---\n"])
def test_a_file_without_a_document_is_a_finding(text: str) -> None:
    assert "holds no document" in one_fault(text).message


def test_empty_documents_beside_real_ones_are_left_out() -> None:
    documents, findings = load("---\n---\na: 1\n---\n# nothing\n---\nb: 2\n---\n")
    assert findings == []
    assert [d.data for d in documents] == [{"a": 1}, {"b": 2}]
    assert [d.index for d in documents] == [0, 1]


def test_a_fault_in_one_document_leaves_the_others() -> None:
    documents, findings = load("a: 1\n---\nb: 1\nb: 2\n---\nc: 3\n")
    assert [d.data for d in documents] == [{"a": 1}, {"c": 3}]
    assert [place(f) for f in findings] == [(4, 1)]


@pytest.mark.parametrize("shape", ["[" * 1000 + "]" * 1000, "{a: " * 500 + "}" * 500])
def test_deep_nesting_is_a_finding(shape: str) -> None:
    assert "nested deeper" in one_fault(shape).message


def test_the_deepest_allowed_nesting_is_read() -> None:
    assert load("[" * MAX_DEPTH + "]" * MAX_DEPTH)[1] == []
    assert "nested deeper" in one_fault("[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1)).message


def test_block_nesting_is_limited_too() -> None:
    text = "".join(f"{' ' * i}k:\n" for i in range(MAX_DEPTH + 5))
    finding = one_fault(text)
    assert "nested deeper" in finding.message
    assert finding.position.line == MAX_DEPTH + 1


def test_anchors_cannot_blow_a_file_up() -> None:
    rows = [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 30)]
    started = time.process_time()
    finding = one_fault("a0: &a0 [x]\n" + "\n".join(rows))
    assert "once anchors are expanded" in finding.message
    assert time.process_time() - started < 10


def test_anchors_cannot_hide_depth_or_circles() -> None:
    chain = "- &a0 [x]\n" + "".join(f"- &a{i} [*a{i - 1}]\n" for i in range(1, 2000))
    assert "deeper than" in one_fault(chain).message
    assert "deeper than" in one_fault("&a [*a]").message
    assert "deeper than" in one_fault("&a {b: {c: *a}}").message


def test_size_is_limited(tmp_path: Path) -> None:
    assert "larger than" in one_fault(b"#" * (MAX_BYTES + 1)).message
    big = tmp_path / "big.yaml"
    big.write_bytes(b"a: " + b"x" * 5 * 1024 * 1024)
    documents, findings = load_file(big, "big.yaml")
    assert documents == [] and "larger than" in findings[0].message
    many = one_fault("- x\n" * (MAX_NODES + 5))
    assert f"more than {MAX_NODES} values" in many.message


def test_a_file_that_cannot_be_read_is_a_finding(tmp_path: Path) -> None:
    for path in (tmp_path / "none.yaml", tmp_path):
        documents, findings = load_file(path, "none.yaml")
        assert documents == []
        assert "cannot be read" in findings[0].message


YAMLISH = st.text(alphabet="ab:-?,[]{}&*!|>'\"%@`#~<=. \n\t\r0\\é键𝔘\u2028\x00", max_size=80)


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.binary(max_size=200), YAMLISH.map(str.encode)))
def test_any_bytes_give_documents_or_findings_inside_the_file(raw: bytes) -> None:
    documents, findings = load_bytes(raw, "f.yaml")
    assert documents or findings
    lines = max(1, len(raw.splitlines()) + 1)
    for finding in findings:
        assert finding.message and "\n" not in finding.message
        assert 1 <= finding.position.line <= lines
        assert finding.position.column >= 1


SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-(10**9), 10**9), st.text("abc xyz:#-", max_size=8)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text("abcdef", min_size=1, max_size=4), inner, max_size=3)
    ),
    max_leaves=12,
)


def written(value: object) -> str:
    """Write a value as flow YAML, quoting all text."""
    if isinstance(value, dict):
        return "{" + ", ".join(f'"{k}": {written(v)}' for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(written, value)) + "]"
    if isinstance(value, str):
        return f'"{value}"'
    return "null" if value is None else str(value).lower()


def paths(value: object, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    below: list[tuple[str | int, object]] = []
    if isinstance(value, dict):
        below = list(value.items())
    elif isinstance(value, list):
        below = list(enumerate(value))
    return [path, *(p for key, v in below for p in paths(v, (*path, key)))]


@settings(max_examples=150, deadline=None)
@given(VALUES)
def test_values_come_back_and_every_path_has_a_position(value: object) -> None:
    (document,), findings = load(f"root: {written(value)}\n")
    assert findings == []
    assert document.data == {"root": value}
    assert repr(document.data) == repr({"root": value})
    assert set(document.positions) == set(paths({"root": value}))


@pytest.mark.parametrize(
    ("text", "opened", "tip"),
    [
        ("a: {b: 1\nc: 2\n", "'{' opens in line 1, column 4", "close it with }"),
        ("a: {b: 1", "'{' opens in line 1, column 4", "close it with }"),
        ("a:\n  - [1, 2\nb: 3\n", "'[' opens in line 2, column 5", "close it with ]"),
    ],
)
def test_a_bracket_that_is_not_closed_says_where_it_opens(text: str, opened: str, tip: str) -> None:
    _, findings = load_bytes(text.encode(), "f.yaml")
    assert len(findings) == 1
    assert opened in findings[0].message and findings[0].suggestion == tip


def test_no_quotes_mend_what_is_nested_too_deep() -> None:
    for depth in (100, 3000):
        _, findings = load_bytes(("a: " + "[" * depth + "]" * depth).encode(), "f.yaml")
        assert [(f.message, f.suggestion) for f in findings] == [
            ("nested deeper than 64 levels", None)
        ]


def lines_of(findings: list[Finding]) -> list[int]:
    return [f.position.line for f in findings]


def test_all_faults_of_a_file_come_in_one_run() -> None:
    text = "a: !x 1\nb: 1\nb: 2\n---\nc: 1\nc: 2\n---\n? [d]\n: 1\ne: !!str 5\n---\nf: 1\n"
    documents, findings = load(text)
    assert sorted(lines_of(findings)) == [1, 3, 6, 8, 10]
    assert [d.data for d in documents] == [{"f": 1}]


def test_a_broken_document_can_still_be_looked_at() -> None:
    text = "a: !x 1\nb: 2\n---\nc: 3\n---\nd: 4\nd: 5\n"
    documents, findings = load_bytes(text.encode(), "f.yaml", broken=True)
    assert len(findings) == 2
    assert [(d.data, d.broken) for d in documents] == [
        ({"a": 1, "b": 2}, True), ({"c": 3}, False), ({"d": 4}, True),
    ]  # fmt: skip


def test_what_lacks_its_better_half_is_not_looked_at() -> None:
    blown = "a0: &a0 [x]\n" + "".join(
        f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 9)
    )
    for text in ("b: &b {x: 1}\na:\n  <<: *b\n", blown, "a: !x 1\n" + "[" * 99):
        documents, findings = load_bytes(text.encode(), "f.yaml", broken=True)
        assert documents == [] and findings


def test_the_fast_reader_is_used_where_there_is_one() -> None:
    if hasattr(yaml, "CBaseLoader"):
        assert loader._BaseLoader is yaml.CBaseLoader


SAMPLES = [
    "a: 1\nb: [x, {y: 'z'}]\n---\nc: |\n  text\n",
    "a: 1\na: 2\n", "a: !x 5\n", "a: @b\n", "a: [1,\nb: 2", "a:\n\tb: 1\n", "# nothing\n",
    "m: {k: 1, k: 2}\n", "键: {𝔘: 1}\n", "&a [*a]", "[" * 100 + "]" * 100, "a: b: c\n",
]  # fmt: skip


@pytest.mark.parametrize("text", SAMPLES)
def test_the_slow_reader_says_the_same(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """PyYAML comes without libyaml on some systems: its messages may differ, the rest may not."""
    documents, findings = load(text)
    monkeypatch.setattr(loader, "_BaseLoader", yaml.BaseLoader)
    slow, faults = load(text)
    assert [d.data for d in slow] == [d.data for d in documents]
    assert [d.positions for d in slow] == [d.positions for d in documents]
    assert [f.position.line for f in faults] == [f.position.line for f in findings]


def test_a_tab_in_front_is_said_by_the_slow_reader_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loader, "_BaseLoader", yaml.BaseLoader)
    assert one_fault("a:\n\tb: 1\n").suggestion == "indent with spaces"


def test_without_the_fast_reader_the_module_still_loads() -> None:
    code = (
        "import yaml; del yaml.CBaseLoader\n"
        "from kunlun_adapt.documents import loader\n"
        "assert loader._BaseLoader is yaml.BaseLoader\n"
        "documents, findings = loader.load_bytes(b'a: [1, on]', 'f.yaml')\n"
        "assert not findings and documents[0].data == {'a': [1, 'on']}\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)

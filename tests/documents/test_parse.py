# ruff: noqa: E501 -- the YAML lines of the tables stay whole
from __future__ import annotations

import copy
import json
import random
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kunlun_adapt.diagnostics import Finding
from kunlun_adapt.documents import OperatorRecipe, PlatformMap, load_bytes, load_catalog, parse

ROOT = Path(__file__).resolve().parents[2]

MAP = """\
apiVersion: kunlun-adapt/v1
kind: PlatformMap
name: kunlun
sglang: ">=0.5.17"
device:
  name: kunlun
  probe: {module: torch_xmlir}
  profiles:
    card: {reports_as: cuda, dispatch_key: cuda, distributed_backend: nccl}
"""
RECIPE = """\
apiVersion: kunlun-adapt/v1
kind: OperatorRecipe
name: silu_and_mul
family: activation
why: because
golden: "a.b:c"
params: {x: "Tensor[rows, 2*d]"}
returns: "Tensor[rows, d]"
capture: safe
serves: [attention_backend]
kernels:
  - {name: golden, fallback: true}
otherwise: error
"""


def findings_of(text: str) -> list[Finding]:
    raws, faults = load_bytes(text.encode(), "map.yaml")
    assert faults == []
    document, findings = parse(raws[0])
    assert (document is None) == bool(findings)
    return findings


def only(text: str) -> Finding:
    findings = findings_of(text)
    assert len(findings) == 1, [f.message for f in findings]
    return findings[0]


def test_the_plain_documents_are_accepted() -> None:
    assert findings_of(MAP) == []
    assert findings_of(RECIPE) == []


# (appended to the map, with § where the finding points; what it says; what it suggests)
FAULTS = [
    ('methods: {foo: §nope}', 'is not an implementation path such as', None),
    ("methods: {foo: {§crad: 'a:b'}}", "card, simulator or simulator_cuda, not 'crad'", "'card'"),
    ('methods: {foo: {card: §55}}', 'methods.foo.card: must be text, not', '"55"'),
    ('methods: {foo: §55}', 'methods.foo: must be text, not the number 55', '"55"'),
    ('methods: {foo: [§x]}', "methods.foo[0]: must be a mapping, not 'x'", None),
    ("methods: {foo: [{sglang: §'>>1', impl: 'a:b'}]}", "methods.foo[0].sglang: '>>1'", None),
    ('methods: {foo: §}', 'methods.foo: must be text, not nothing', None),
    ("methods: {§5x: 'a:b'}", "'5x' is not a Python identifier", None),
    ("methods: {§class: 'a:b'}", "'class' is a Python keyword", None),
    ('capabilities: {graph: §yes}', "must be true or false, not 'yes'", None),
    ('capabilities: {graph: {card: §33}}', 'graph.card: must be true or false', None),
    ('capabilities: {graph: §[true]}', 'must be true or false or a mapping', None),
    ('§methdos: {}', "unknown key 'methdos'", "did you mean 'methods'?"),
    ('§<: {}', "unknown key '<'", 'known keys: apiVersion'),
    ('factories: {§kv_pol: {}}', "unknown key 'kv_pol' in factories", "'kv_pool'"),
    ("factories: {attention_backend: {name: x, §cls: 'a:b', class: 'a:b'}}", "unknown key 'cls' in factories.attention_backend", None),
    ('hooks: §77', 'hooks: must be a list, not the number 77', None),
    ('hooks: [§77]', 'hooks[0]: must be a mapping, not the number 77', None),
    ("hooks: [{id: h, why: w, type: §repalce, impl: 'a:b', at: [{target: t}]}]", 'hooks[0].type: must be before, after, around, replace', "'replace'"),
    ('hooks: [§{id: h, why: w, type: replace, at: [{target: t}]}]', 'a hook of type replace needs impl', None),
    ("hooks: [{id: h, why: w, type: add, impl: 'a:b', at: §[]}]", 'at least one', None),
    ("hooks: [{id: h, why: w, type: after, impl: 'a:b', at: [{target: t, ignores: §77}]}]", 'ignores: must be a mapping or a list, not the number 77', None),
    ("hooks: [{id: h, why: w, type: after, impl: 'a:b', at: [{target: t, ignores: {x: §[9]}}]}]", 'ignores.x: must be a plain value, not a list', None),
    ("hooks: [{id: h, why: w, type: after, impl: 'a:b', at: [{target: t, ignores: [§9]}]}]", 'ignores[0]: must be text, not the number 9', '"9"'),
    ("hooks: [{id: h, why: w, type: after, impl: 'a:b', process: [§shceduler], at: [{target: t}]}]", 'process[0]: must be main, scheduler', "'scheduler'"),
    ('server_args: [{arg: a, default: §{b: 1}, why: w}]', 'a plain value or a list', None),
    ("server_args: [{arg: a, default: 1, why: §''}]", 'must not be empty', None),
    ('server_args: [§{arg: a, default: 1}]', "key 'why' is missing in server_args[0]", 'add why: text'),
    ('server_args: [§{arg: a, default: 1, force: 2, why: w}]', 'exactly one of', None),
    ('shims: [{module: §a b, provide: c, why: w}]', 'is not a dotted path', None),
    ("shims: [{module: a, provide: c, why: w, sglang: §'>>1'}]", 'PEP 440', None),
    ('conflicts: [{between: [a], decision: d, recorded: §2026-13-01}]', 'not a date', None),
    ('interface: {x: [§{method: a, call: b}]}', 'exactly one of method', None),
]  # fmt: skip


@pytest.mark.parametrize(("line", "says", "tip"), FAULTS, ids=[f[0][:40] for f in FAULTS])
def test_one_fault_is_one_finding_at_its_place(line: str, says: str, tip: str | None) -> None:
    text = f"{MAP}{line.replace('§', '')}\n"
    finding = only(text)
    assert says in finding.message
    assert finding.position.line == text.count("\n")
    assert finding.position.column == line.index("§") + 1
    if tip is None:
        assert "did you mean" not in (finding.suggestion or "")
    else:
        assert tip in (finding.suggestion or "")


JARGON = (
    "Input should",
    "valid",
    "dictionary",
    "extra",
    "permitted",
    "union",
    "literal",
    "nullable",
)


@pytest.mark.parametrize("line", [f[0] for f in FAULTS])
def test_no_message_speaks_of_the_validator(line: str) -> None:
    for finding in findings_of(f"{MAP}{line.replace('§', '')}\n"):
        assert not any(word in finding.message for word in JARGON), finding.message


@pytest.mark.parametrize(
    ("text", "says", "line", "column"),
    [
        ("- a\n- b\n", "must be a mapping, not a list", 1, 1),
        ("\n\nhello\n", "must be a mapping, not 'hello'", 3, 1),
        ("a: 1\n", "key 'apiVersion' is missing", 1, 1),
        ("apiVersion: kunlun-adapt/v2\nkind: PlatformMap\n", "must be kunlun-adapt/v1", 1, 13),
        ("apiVersion: 1\n", "must be kunlun-adapt/v1, not the number 1", 1, 13),
        ("apiVersion: kunlun-adapt/v1\n", "key 'kind' is missing", 1, 1),
        ("apiVersion: kunlun-adapt/v1\nkind: PlatfromMap\n", "must be one of PlatformMap", 2, 7),
        ("apiVersion: kunlun-adapt/v1\nkind: [a]\n", "not a list", 2, 7),
        ("apiVersion: [x]\nkind: PlatformMap\n", "not a list", 1, 13),
    ],
)
def test_the_head_of_a_document(text: str, says: str, line: int, column: int) -> None:
    finding = only(text)
    assert says in finding.message
    assert (finding.position.line, finding.position.column) == (line, column)


def test_suggestions_for_the_head_of_a_document() -> None:
    head = "apiVersion: kunlun-adapt/v"
    assert only(f"{head}1\nkind: PlatfromMap\n").suggestion == "did you mean 'PlatformMap'?"
    assert "upgrade" in (only(f"{head}2\nkind: PlatformMap\n").suggestion or "")
    assert "upgrade" not in (only("apiVersion: v1\nkind: PlatformMap\n").suggestion or "")


def test_a_document_of_another_kind_is_refused_where_one_is_expected() -> None:
    raws, _ = load_bytes(RECIPE.encode(), "f.yaml")
    document, findings = parse(raws[0], "PlatformMap")
    assert document is None
    assert "must be PlatformMap in this place, not OperatorRecipe" in findings[0].message
    assert findings[0].position.line == 2


def test_missing_keys_stand_at_the_mapping_that_lacks_them() -> None:
    text = MAP.replace("  probe: {module: torch_xmlir}\n", "").replace("name: kunlun\nsg", "sg")
    findings = findings_of(text)
    assert [(f.message, f.position.line, f.position.column) for f in findings] == [
        ("key 'name' is missing", 1, 1),
        ("key 'probe' is missing in device", 5, 3),
    ]
    assert findings[1].suggestion == "add probe: a mapping"


def test_findings_come_in_the_order_of_the_lines() -> None:
    findings = findings_of(f"{MAP}zzz: 1\nhooks: 3\nmethods: {{a: 3}}\n")
    assert [f.position.line for f in findings] == [10, 11, 12]


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("fallback: true", "when: {x: {a: 1}}", "must be a plain value or a list, not a mapping"),
        ("fallback: true", "prepare: {x: contigous}", "must be contiguous, not 'contigous'"),
        ("fallback: true", "prepare: {x: {do: kast}}", "prepare.x.do: must be contiguous or cast"),
        ("fallback: true", "prepare: {x: {do: cast}}", "cast needs `to`"),
        ("fallback: true", "prepare: {x: {do: contiguous, to: int8}}", "only cast takes it"),
        ("fallback: true", "prepare: {x: {do: cast, to: 'a\\nb'}}", "is not a Python identifier"),
        ("name: golden, fallback: true", "name: other", "tier 'other' needs impl"),
        ("serves: [attention_backend]\n", "", "an operator needs binds or serves"),
        ("otherwise: error", "otherwise: golden", "otherwise: must be error, not 'golden'"),
        ("capture: safe", "capture: true", "capture: must be safe or eager, not true"),
        ("otherwise: error", "otherwise: error\nprecision: {int8: {cosine: 2}}", "at most 1"),
        ("otherwise: error", "otherwise: error\nprecision: {int8: {max_abs: -1}}", "at least 0"),
        ("otherwise: error", "otherwise: error\nprecision: {int8: {max_abs: .nan}}", "a finite number"),
        ("params: {x: \"Tensor[rows, 2*d]\"}", "params: {}", "params: needs at least one entry"),
    ],
)  # fmt: skip
def test_faults_of_an_operator_recipe(old: str, new: str, says: str) -> None:
    assert RECIPE.count(old) == 1
    text = RECIPE.replace(old, new.replace("'a\\nb'", '"a\\nb"'))
    assert says in only(text).message


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        (">=0.5.17,<0.5.24", True), ("==0.5.12.post1", True), ("!=0.5.18", True),
        ("<0.5.13", True), (">0.5.12.post1,<0.5.12.post3", True), ("~=0.5.1", True),
        (">=0.6a1", True), (">0.6a1,<0.6a3", True), ("==0.5.*", True), ("===weird", False), ("===0.5.19", True),
        ("", False), ("  ", False), (">=2,<1", False), ("==1,==2", False), (">1,<1.0", False),
        ("0.5.17", False), ("latest", False), (">= 0.5 <0.6", False),
    ],
)  # fmt: skip
def test_version_ranges(text: str, holds: bool) -> None:
    findings = findings_of(MAP.replace('">=0.5.17"', f'"{text}"'))
    assert [f.code for f in findings] == ([] if holds else ["KA006"])


def real_documents() -> list[dict[str, Any]]:
    catalog = load_catalog(ROOT)
    documents = [d.raw.data for d in catalog.operators]
    if catalog.platform_map is not None:
        documents.append(catalog.platform_map.raw.data)
    return documents


def test_the_shipped_documents_are_read() -> None:
    catalog = load_catalog(ROOT)
    assert [f"{f.position}: {f.message}" for f in catalog.findings] == []
    assert catalog.platform_map is not None
    assert isinstance(catalog.platform_map.model, PlatformMap)
    assert catalog.operators
    assert all(isinstance(d.model, OperatorRecipe) for d in catalog.operators)


ODD: list[Any] = [
    None, True, 0, -1.5, 10**300, float("inf"), float("nan"), "", "x", "[key]", "dict[", "9" * 500,
    [], [None], [[]], {}, {"": 1}, {"card": 1}, {"x": {"y": []}}, {"[key]": 1}, {"str": {}},
]  # fmt: skip


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) below a value."""
    items: list[tuple[Any, Any]] = []
    below = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in below:
        items.append((value, key))
        if isinstance(inner, (dict, list)):
            items.extend(places(inner))
    return items


def mutate(document: dict[str, Any], chooser: random.Random) -> None:
    for _ in range(chooser.randint(1, 4)):
        container, key = chooser.choice(places(document))
        what = chooser.randrange(4)
        if what == 0:
            container[key] = chooser.choice(ODD)
        elif what == 1:
            del container[key]
        elif isinstance(container, dict):
            container[chooser.choice(["naem", "[key]", "str", "if", key[:-1] or "x"])] = (
                container.pop(key) if what == 2 else chooser.choice(ODD)
            )
        if not places(document):
            return


@settings(max_examples=120, deadline=None)
@given(st.integers(0, 10**9))
def test_a_damaged_document_gives_findings_and_never_a_traceback(seed: int) -> None:
    chooser = random.Random(seed)
    document = copy.deepcopy(chooser.choice(DOCUMENTS))
    mutate(document, chooser)
    text = json.dumps(document, indent=1, ensure_ascii=False).replace("Infinity", ".inf")
    raws, faults = load_bytes(text.replace("NaN", ".nan").encode(), "f.yaml")
    assert faults == [] and len(raws) == 1
    model, findings = parse(raws[0])
    assert (model is None) == bool(findings)
    lines = text.split("\n")
    for finding in findings:
        assert 1 <= finding.position.line <= len(lines)
        assert 1 <= finding.position.column <= len(lines[finding.position.line - 1])
        # A document may well have a parameter that is called `valid`.
        said = re.sub(r"\S*[.\[]\S+", "", finding.message)
        assert not any(word in said for word in JARGON[:4]), finding.message


DOCUMENTS = real_documents()


@pytest.mark.parametrize(
    ("value", "text"), [(".nan", ".nan"), ("-.inf", "-.inf"), ("+.INF", ".inf")]
)
def test_numbers_that_are_none_are_refused_everywhere(value: str, text: str) -> None:
    for old, new in (("name: kunlun", f"name: kunlun\nstack: [{{a: {value}}}]"),):
        found = only(MAP.replace(old, new, 1))
        assert found.code == "KA002" and "stack[0].a: must be a finite number" in found.message
        assert found.suggestion == f'put it in quotes if it is text: "{text}"'


@pytest.mark.parametrize(
    ("value", "tip"),
    [
        ("0.5", 'write a range in quotes: "==0.5.*"'),
        ("1", 'write a range in quotes: "==1.*"'),
        ("-1", 'write a range in quotes, such as ">=0.5.17,<0.5.24"'),
        ("true", 'write a range in quotes, such as ">=0.5.17,<0.5.24"'),
    ],
)
def test_a_number_for_a_range_becomes_one_that_holds(value: str, tip: str) -> None:
    assert MAP.count('sglang: ">=0.5.17"') == 1
    found = only(MAP.replace('sglang: ">=0.5.17"', f"sglang: {value}"))
    assert (found.code, found.suggestion) == ("KA002", tip)
    advised = tip.rpartition(" ")[2]
    assert findings_of(MAP.replace('">=0.5.17"', advised)) == []


@pytest.mark.parametrize("text", ['"false"', "'true'"])
def test_a_quoted_flag_loses_its_quotes(text: str) -> None:
    found = only(MAP + f"capabilities: {{triton: {text}}}\n")
    assert found.suggestion == f"remove the quotes: {text[1:-1]}"


@pytest.mark.parametrize(
    ("cases", "says"),
    [
        ("{x: []}", "'x' has no case"),
        ("{x: [[]]}", "the case [], which is no shape"),
        ("{x: [[1, 2], [4, -1]]}", "the case [4, -1], which is no shape"),
    ],
)
def test_cases_are_shapes(cases: str, says: str) -> None:
    assert says in only(RECIPE + f"cases: {cases}\n").message
    assert findings_of(RECIPE + "cases: {x: [[1, 0], [2, 4], -1, null]}\n") == []

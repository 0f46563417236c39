"""SARIF: the parts that the standard requires, checked against its own rules in short form."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kunlun_adapt.diagnostics import CODES, Finding, Position, ReleaseReport, Severity
from kunlun_adapt.diagnostics.sarif import render_sarif
from tests.diagnostics.test_report import CLEAN, FULL, REPORT

MESSAGE = {
    "type": "object",
    "properties": {"text": {"type": "string", "minLength": 1}, "markdown": {"type": "string"}},
    "required": ["text"],
    "additionalProperties": False,
}
LEVEL = {"enum": ["none", "note", "warning", "error"]}
PLACE = {
    "type": "object",
    "properties": {
        "artifactLocation": {
            "type": "object",
            "properties": {"uri": {"type": "string"}, "uriBaseId": {"type": "string"}},
            "required": ["uri", "uriBaseId"],
            "additionalProperties": False,
        },
        "region": {
            "type": "object",
            "properties": {
                "startLine": {"type": "integer", "minimum": 1},
                "startColumn": {"type": "integer", "minimum": 1},
            },
            "required": ["startLine"],
            "additionalProperties": False,
        },
    },
    "required": ["artifactLocation", "region"],
    "additionalProperties": False,
}
LOCATION = {
    "type": "object",
    "properties": {
        "id": {"type": "integer", "minimum": 0},
        "physicalLocation": PLACE,
        "message": MESSAGE,
        "logicalLocations": {
            "type": "array",
            "uniqueItems": True,
            "items": {
                "type": "object",
                "properties": {"name": {"type": "string"}, "kind": {"type": "string"}},
                "additionalProperties": False,
            },
        },
    },
    "additionalProperties": False,
}
SCHEMA = {
    "type": "object",
    "required": ["version", "runs"],
    "additionalProperties": False,
    "properties": {
        "$schema": {"type": "string", "pattern": "^https://"},
        "version": {"const": "2.1.0"},
        "runs": {
            "type": "array",
            "minItems": 1,
            "maxItems": 1,
            "items": {
                "type": "object",
                "required": ["tool", "results"],
                "additionalProperties": False,
                "properties": {
                    "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
                    "properties": {"type": "object"},
                    "originalUriBaseIds": {
                        "type": "object",
                        "additionalProperties": {
                            "type": "object",
                            "properties": {"description": MESSAGE},
                            "additionalProperties": False,
                        },
                    },
                    "tool": {
                        "type": "object",
                        "required": ["driver"],
                        "additionalProperties": False,
                        "properties": {
                            "driver": {
                                "type": "object",
                                "required": ["name"],
                                "additionalProperties": False,
                                "properties": {
                                    "name": {"type": "string"},
                                    "semanticVersion": {"type": "string"},
                                    "rules": {
                                        "type": "array",
                                        "uniqueItems": True,
                                        "items": {
                                            "type": "object",
                                            "required": ["id"],
                                            "additionalProperties": False,
                                            "properties": {
                                                "id": {"type": "string"},
                                                "name": {"type": "string"},
                                                "shortDescription": MESSAGE,
                                                "fullDescription": MESSAGE,
                                                "help": MESSAGE,
                                                "helpUri": {"type": "string"},
                                                "defaultConfiguration": {
                                                    "type": "object",
                                                    "properties": {"level": LEVEL},
                                                    "additionalProperties": False,
                                                },
                                            },
                                        },
                                    },
                                },
                            }
                        },
                    },
                    "results": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "required": ["message"],
                            "additionalProperties": False,
                            "properties": {
                                "ruleId": {"type": "string"},
                                "ruleIndex": {"type": "integer", "minimum": 0},
                                "level": LEVEL,
                                "message": MESSAGE,
                                "locations": {"type": "array", "items": LOCATION},
                                "relatedLocations": {
                                    "type": "array",
                                    "uniqueItems": True,
                                    "items": LOCATION,
                                },
                                "properties": {"type": "object"},
                            },
                        },
                    },
                },
            },
        },
    },
}


def run_of(text: str) -> Any:
    jsonschema = pytest.importorskip("jsonschema")
    body = json.loads(text)
    jsonschema.validate(body, SCHEMA)
    return body["runs"][0]


def test_a_result_names_both_ends_and_the_release() -> None:
    run = run_of(render_sarif([REPORT, CLEAN], version="1.2.3"))
    first = run["results"][0]
    assert run["tool"]["driver"]["semanticVersion"] == "1.2.3"
    assert first["ruleId"] == FULL.code and first["level"] == "error"
    assert run["tool"]["driver"]["rules"][first["ruleIndex"]]["id"] == FULL.code
    (place,) = first["locations"]
    assert place["physicalLocation"] == {
        "artifactLocation": {"uri": "operator_recipes/x.yaml", "uriBaseId": "%SRCROOT%"},
        "region": {"startLine": 12, "startColumn": 5},
    }
    (upstream,) = first["relatedLocations"]
    assert upstream["physicalLocation"]["artifactLocation"]["uri"] == "sglang/c.py"
    assert upstream["physicalLocation"]["region"] == {"startLine": 44}
    assert first["properties"]["release"] == "0.5.19"
    assert first["message"]["text"].endswith("Try: target: sglang.c.b")
    assert [r["level"] for r in run["results"]] == ["error", "note", "warning"]
    assert [r["release"] for r in run["properties"]["releases"]] == ["0.5.19", "0.5.23"]


def test_every_rule_is_described() -> None:
    text = render_sarif(
        [REPORT], version="1", page=lambda code: f"# {code.code}", home="https://docs.example/ka/"
    )
    rules = run_of(text)["tool"]["driver"]["rules"]
    assert [r["id"] for r in rules] == list(CODES)
    assert all(r["helpUri"] == f"https://docs.example/ka/codes/{r['id']}/" for r in rules)
    assert {r["id"] for r in rules if "help" in r} == {f.code for f in REPORT.findings}
    rules = run_of(render_sarif([REPORT], version="1"))["tool"]["driver"]["rules"]
    assert all("helpUri" not in r and "help" not in r for r in rules)


@given(st.text(max_size=20), st.text(min_size=1, max_size=20), st.integers(0, 2))
def test_any_text_of_a_document_stays_text(file: str, message: str, line: int) -> None:
    finding = Finding("KA001", Severity.ERROR, message, Position(file, line, line))
    (result,) = run_of(render_sarif([ReleaseReport("1", 0, 0, 0, (finding,))], version="1"))[
        "results"
    ]
    assert result["message"]["text"] == message
    uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert uri.isascii() and " " not in uri and unquote(uri) == file


def test_a_file_whose_name_is_no_text() -> None:
    finding = Finding("KA001", Severity.ERROR, "m", Position("a\udcff.yaml", 1, 1))
    run = run_of(render_sarif([ReleaseReport("1", 0, 0, 0, (finding,))], version="1"))
    place = run["results"][0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "a%FF.yaml"

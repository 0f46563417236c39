"""Findings as SARIF 2.1.0, for code scanning services and editors."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import quote

from kunlun_adapt.diagnostics.codes import CODES, Code
from kunlun_adapt.diagnostics.finding import Finding
from kunlun_adapt.diagnostics.report import ReleaseReport
from kunlun_adapt.diagnostics.severity import Severity

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
WORKSPACE = "%SRCROOT%"
UPSTREAM = "SGLANG"
"""What the paths are relative to: the folder of `platform_map.yaml`, and that of `sglang/`."""

_LEVEL = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}
_INDEX = {code: index for index, code in enumerate(CODES)}


def render_sarif(
    reports: Sequence[ReleaseReport],
    *,
    version: str,
    page: Callable[[Code], str | None] = lambda _: None,
    home: str | None = None,
) -> str:
    """Return one SARIF run with all rules and the findings of all releases.

    `page` gives the text of a code's page, which travels with the codes that were found; `home` is
    the address under which the pages are published, if they are.
    """
    found = {f.code for report in reports for f in report.findings}
    run = {
        "tool": {
            "driver": {
                "name": "kunlun-adapt",
                "semanticVersion": version,
                "rules": [
                    _rule(code, page(code) if code.code in found else None, home)
                    for code in CODES.values()
                ],
            }
        },
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {
            WORKSPACE: {"description": {"text": "the folder that holds platform_map.yaml"}},
            UPSTREAM: {"description": {"text": "the folder that holds sglang/ in the release"}},
        },
        "properties": {
            "releases": [
                {
                    "release": r.release,
                    "bound": r.bound,
                    "planned": r.planned,
                    "excluded": r.excluded,
                }
                for r in reports
            ]
        },
        "results": [_result(f, report.release) for report in reports for f in report.ordered],
    }
    body = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(body, indent=2, ensure_ascii=False) + "\n"


def _rule(code: Code, page: str | None, home: str | None) -> dict[str, Any]:
    rule: dict[str, Any] = {
        "id": code.code,
        "name": "".join(part.capitalize() for part in code.name.split("-")),
        "shortDescription": {"text": code.name},
        "fullDescription": {"text": f"{code.meaning[:1].upper()}{code.meaning[1:]}."},
        "defaultConfiguration": {"level": _LEVEL[code.severity]},
    }
    if home:
        rule["helpUri"] = f"{home.rstrip('/')}/codes/{code.code}/"
    if page:
        rule["help"] = {"text": page, "markdown": page}
    return rule


def _result(finding: Finding, release: str) -> dict[str, Any]:
    text = finding.message
    if finding.suggestion:
        text += f"\nTry: {finding.suggestion}"
    region = {"startLine": finding.position.line, "startColumn": finding.position.column}
    result: dict[str, Any] = {
        "ruleId": finding.code,
        "ruleIndex": _INDEX[finding.code],
        "level": _LEVEL[finding.severity],
        "message": {"text": text},
        "locations": [{"physicalLocation": _place(WORKSPACE, finding.position.file, region)}],
    }
    if finding.binding:
        name = {"name": finding.binding, "kind": "member"}
        result["locations"][0]["logicalLocations"] = [name]
    if finding.upstream:
        where = _place(UPSTREAM, finding.upstream.file, {"startLine": finding.upstream.line})
        result["relatedLocations"] = [
            {
                "id": 1,
                "physicalLocation": where,
                "message": {"text": finding.target or f"sglang {release}"},
            }
        ]
    properties = {
        "release": release,
        "binding": finding.binding,
        "target": finding.target,
        "suggestion": finding.suggestion,
    }
    result["properties"] = {k: v for k, v in properties.items() if v is not None}
    return result


def _place(base: str, file: str, region: dict[str, int]) -> dict[str, Any]:
    """Return a physical location; lines and columns below 1 are not SARIF."""
    # A lone surrogate stands for a byte that is no UTF-8 in a file's name.
    uri = quote(file.encode("utf-8", "surrogateescape"))
    return {
        "artifactLocation": {"uri": uri, "uriBaseId": base},
        "region": {name: max(number, 1) for name, number in region.items()},
    }

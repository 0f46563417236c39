"""Every environment variable that the code reads is documented, and no other."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
VARIABLE = re.compile(r"KUNLUN_ADAPT_[A-Z_]+")
ROW = re.compile(r"^\| `(KUNLUN_ADAPT_[A-Z_]+)", re.MULTILINE)
# Handed by one process to the next; a user has nothing to set there.
INTERNAL = {"KUNLUN_ADAPT_RUN"}


@cache
def read_by_the_code() -> frozenset[str]:
    found: set[str] = set()
    for path in (ROOT / "kunlun_adapt").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found |= {node.value} if VARIABLE.fullmatch(node.value) else set()
    for path in (ROOT / "templates").rglob("*.j2"):
        found |= set(VARIABLE.findall(path.read_text(encoding="utf-8")))
    return frozenset(found)


@pytest.mark.parametrize(
    ("page", "left_out"),
    [("README.md", INTERNAL), ("README_zh.md", INTERNAL), ("docs/observability.md", set())],
)
def test_the_table_has_each_variable_once(page: str, left_out: set[str]) -> None:
    rows = ROW.findall((ROOT / page).read_text(encoding="utf-8"))
    assert sorted(rows) == sorted(read_by_the_code() - left_out)


def test_the_variables_are_found() -> None:
    assert {"KUNLUN_ADAPT_SIMULATOR_DEVICE", "KUNLUN_ADAPT_STRICT"} | INTERNAL <= read_by_the_code()

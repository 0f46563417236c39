"""The rules by which the public callers choose kernels, read by the parser that reads recipes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from kunlun_adapt.check.operator_faults import operator_faults
from kunlun_adapt.documents import Document, load_bytes, load_file, parse
from kunlun_adapt.plan import TierTable, parse_subject, parse_test, tier_table

FILE = Path(__file__).with_name("tier_rules.yaml")
RULES: list[dict[str, Any]] = load_file(FILE, FILE.name)[0][0].data["rules"]
EXPRESSED = [rule for rule in RULES if "kernels" in rule]
RECIPE = {
    "apiVersion": "kunlun-adapt/v1", "kind": "OperatorRecipe", "family": "tried", "why": "a rule",
    "golden": "tried.golden:operation", "returns": "None", "capture": "eager",
    "serves": ["attention_backend"], "otherwise": "error",
}  # fmt: skip


def recipe(rule: dict[str, Any]) -> Document[Any]:
    """Make a whole recipe of a rule, as text, and read it."""
    taken = {k: rule[k] for k in ("params", "reads", "derive") if k in rule}
    kernels = [{"impl": "tried.kernels:kernel", **tier} for tier in rule["kernels"]]
    text = yaml.safe_dump(
        {**RECIPE, "name": f"rule_{rule['id']}", **taken, "kernels": kernels}, sort_keys=False
    )
    raws, findings = load_bytes(text.encode(), "rule.yaml")
    assert findings == []
    document, findings = parse(raws[0], "OperatorRecipe")
    assert findings == []
    assert document is not None
    return document


def test_no_rule_is_left_out_and_none_stands_twice() -> None:
    numbers = {
        *range(1, 13), *range(20, 28), *range(30, 35), *range(40, 44), *range(50, 56),
        *range(60, 68), *range(70, 74), *range(80, 83), *range(90, 98),
    }  # fmt: skip
    assert [rule["id"] for rule in RULES] == [f"T{n:02}" for n in sorted(numbers)]
    assert len(RULES) == 58
    for rule in RULES:
        assert rule["says"]
        forms = [key for key in ("kernels", "server_args", "not_expressed") if rule.get(key)]
        assert len(forms) == 1, rule["id"]


def test_the_page_counts_them() -> None:
    page = FILE.parents[2] / "docs" / "conditions.md"
    silent = [rule for rule in RULES if "not_expressed" in rule]
    text = page.read_text(encoding="utf-8")
    assert f"{len(RULES) - len(silent)} of the {len(RULES)} rules" in text
    for rule in silent:
        assert rule["id"] in text


@pytest.mark.parametrize("rule", EXPRESSED, ids=lambda rule: rule["id"])
def test_a_rule_stands_in_a_recipe_without_a_fault(rule: dict[str, Any]) -> None:
    document = recipe(rule)
    assert operator_faults(document) == []
    for _, conditions in tier_table(document.model).tiers:
        for condition in conditions:
            compile(condition.expression(), rule["id"], "eval")


@pytest.mark.parametrize("rule", EXPRESSED, ids=lambda rule: rule["id"])
def test_a_rule_chooses_what_the_callers_choose(rule: dict[str, Any]) -> None:
    table = tier_table(recipe(rule).model)
    assert rule["calls"]
    for call in rule["calls"]:
        assert table.serving(values(table, call["given"])) == call["tier"], call


def values(table: TierTable, given: dict[str, Any]) -> dict[str, Any]:
    """Add what is derived from the values that a call gives."""
    found = dict(given)
    for name, derived in table.derived.items():
        if all(subject in found for subject in derived.subjects):
            found[name] = derived.value(found)
    for text in found:
        assert text in table.derived or parse_subject(text)
    return found


def test_a_rule_for_server_arguments_stands_in_the_map() -> None:
    (rule,) = (rule for rule in RULES if "server_args" in rule)
    for entry in rule["server_args"]:
        for text, value in entry["when"].items():
            test = parse_test(parse_subject(text), value)
            assert test.holds("flashmla") and not test.holds("kunlun")

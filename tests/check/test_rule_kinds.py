"""Which rules look into the release: the others say the same whatever it holds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kunlun_adapt.check import Context
from kunlun_adapt.check.rules import BOTH_RULES, DOCUMENT_RULES, RULES, Rule
from kunlun_adapt.documents import Catalog, load_catalog
from kunlun_adapt.locate import LOCK_FILE
from kunlun_adapt.upstream import Missing, Symbol, read_lock
from tests.check.bench import Bench

ROOT = Path(__file__).resolve().parents[2]
PURE = tuple(rule for rule in DOCUMENT_RULES if rule not in BOTH_RULES)


class Refusing:
    """Facts that nobody may ask for."""

    version = "0.5.19"

    def resolve(self, path: str) -> Symbol | Missing:
        raise AssertionError(f"asked for {path}")

    def members(self, class_path: str) -> dict[str, Symbol]:
        raise AssertionError(f"asked for the members of {class_path}")


def context(catalog: Catalog) -> Context:
    document = catalog.platform_map
    assert document is not None
    lock = read_lock(ROOT / LOCK_FILE)
    return Context(catalog, document, Refusing(), (), lock, beyond_claims=True)


def name(rule: Rule) -> str:
    return rule.__module__.rpartition(".")[2]


@pytest.fixture(params=["bench", "shipped"])
def catalog(request: pytest.FixtureRequest, tmp_path: Path) -> Catalog:
    return Bench(tmp_path).catalog() if request.param == "bench" else load_catalog(ROOT)


@pytest.mark.parametrize("rule", PURE, ids=name)
def test_a_rule_of_the_documents_alone_asks_nothing_of_a_release(
    rule: Callable[..., object], catalog: Catalog
) -> None:
    list(rule(context(catalog)))  # type: ignore[call-overload]


def test_the_rules_of_both_are_rules_of_the_documents() -> None:
    assert set(BOTH_RULES) < set(DOCUMENT_RULES) < set(RULES)
    assert len(RULES) == len(set(RULES))

"""Recipe, golden, adapter and contract of each layer operator say the same."""

from __future__ import annotations

import inspect
import pkgutil
from pathlib import Path

import pytest
import yaml

torch = pytest.importorskip("torch")
from kunlun_adapt import simulator  # noqa: E402
from kunlun_adapt.simulator.contract import contracts  # noqa: E402

simulator.install()
pytestmark = pytest.mark.torch
RECIPES = Path(__file__).resolve().parents[2] / "operator_recipes"
FAMILIES = ("activation", "norm", "rope", "moe", "elementwise")
OPERATORS = {
    recipe["name"]: recipe
    for family in FAMILIES
    for recipe in yaml.safe_load_all((RECIPES / f"{family}.yaml").read_text(encoding="utf-8"))
    if recipe.get("status") != "planned"  # what is to come has no kernels to look at
}
TIERS = [(name, tier) for name, recipe in OPERATORS.items() for tier in recipe["kernels"]]


def parameters(path):
    kinds = inspect.signature(pkgutil.resolve_name(path)).parameters.values()
    positional = [p.name for p in kinds if p.kind is p.POSITIONAL_OR_KEYWORD]
    return positional, {p.name for p in kinds if p.kind is p.KEYWORD_ONLY}


@pytest.mark.parametrize(("name", "tier"), TIERS, ids=[f"{n}-{t['name']}" for n, t in TIERS])
def test_an_implementation_takes_the_operators_parameters(name, tier):
    recipe = OPERATORS[name]
    positional, fixed = parameters(tier.get("impl", recipe["golden"]))
    assert positional == list(recipe["params"])
    assert fixed == set(tier.get("fixed", {}))


@pytest.mark.parametrize("name", OPERATORS)
def test_every_bind_maps_only_declared_parameters(name):
    recipe = OPERATORS[name]
    for bind in recipe["binds"]:
        assert set(bind["args"]) <= set(recipe["params"])


def test_every_vendor_op_that_a_tier_needs_is_simulated():
    needed = {op for _, tier in TIERS for op in tier.get("needs", ())}
    assert needed and needed <= contracts().keys()


def test_only_a_golden_tier_is_a_fallback():
    assert all((tier["name"] == "golden") is bool(tier.get("fallback")) for _, tier in TIERS)

"""The op of a traced operator: what it carries, what it makes, and what a recipe may not say."""

from __future__ import annotations

import ast
import shutil
from pathlib import Path
from typing import Any

import pytest

from kunlun_adapt.diagnostics import AdaptError
from kunlun_adapt.documents import load_catalog
from kunlun_adapt.source import compile_plan, template_folder
from tests.source.conftest import ROOT, plan_of

RECIPE = """\
apiVersion: kunlun-adapt/v1
kind: OperatorRecipe
name: op
family: test
why: a test
golden: "json:dumps"
params: {params}
returns: "{returns}"
mutates: {mutates}
capture: safe
{more}
serves: [kv_pool.mha]
kernels:
{tiers}  - {{name: golden, fallback: true}}
otherwise: error
"""


def workspace(folder: Path, **recipe: str) -> Path:
    shutil.copy2(ROOT / "platform_map.yaml", folder / "platform_map.yaml")
    (folder / "operator_recipes").mkdir()
    text = RECIPE.format(**{"mutates": "[]", "more": "traced: true", "tiers": "", **recipe})
    (folder / "operator_recipes" / "op.yaml").write_text(text, encoding="utf-8")
    return folder


def generated(folder: Path, **recipe: str) -> str:
    root = workspace(folder, **recipe)
    made = compile_plan(plan_of(root, "0.5.19", "simulator"), template_folder(ROOT))
    return made.modules["operators/op"]


def op_call(text: str) -> list[Any]:
    """Return the arguments of `traced_op`: texts as they are, names by their name."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "traced_op":
            return [a.value if isinstance(a, ast.Constant) else ast.unparse(a) for a in node.args]
    raise AssertionError("no op")


def traced_branch(text: str) -> str:
    """Return what the operator's own function does while it is traced."""
    functions = [n for n in ast.parse(text).body if isinstance(n, ast.FunctionDef)]
    own = next(f for f in functions if f.name == "op")
    branch = next(s for s in own.body if isinstance(s, ast.If))
    return ast.unparse(branch)


def test_one_that_writes_and_returns_nothing(tmp_path: Path) -> None:
    params = '{x: "Tensor[n]", total: "Tensor[n]", n: "int | None"}'
    text = generated(tmp_path, params=params, returns="None", mutates="[total]")
    schema = "(Tensor x, Tensor(a1!) total, SymInt? n) -> ()"
    assert op_call(text) == ["op", schema, "serve_op", None]
    assert traced_branch(text) == "if is_compiling():\n    return op_op(x, total, n)"
    assert "if not is_compiling():" not in text, "past that branch nothing is traced"


def test_one_that_returns_what_it_writes_into(tmp_path: Path) -> None:
    params = '{x: "Tensor[n]", out: "Tensor[n]"}'
    text = generated(tmp_path, params=params, returns="Tensor[n]", mutates="[out]")
    assert op_call(text)[1:] == ["(Tensor x, Tensor(a1!) out) -> ()", "serve_op", None]
    assert "op_op(x, out)\n    result = out\n    return result" in traced_branch(text)


def test_one_that_makes_its_result(tmp_path: Path) -> None:
    params = '{x: "Tensor[n]", scale: "float", how: "str", on: "bool"}'
    text = generated(tmp_path, params=params, returns="Tensor[n]")
    schema = "(Tensor x, float scale, str how, bool on) -> Tensor[]"
    assert op_call(text) == ["op", schema, "serve_op", "fake_op"]
    assert "return kernel_golden(x, scale, how, on)" in text


def test_a_place_for_the_result_is_copied_into(tmp_path: Path) -> None:
    params = '{x: "Tensor[n]", out: "Tensor[n] | None"}'
    text = generated(tmp_path, params=params, returns="Tensor[n]", mutates="[out]")
    assert op_call(text)[1] == "(Tensor x) -> Tensor[]"
    assert "if out is not None:\n        result = out.copy_(result)" in traced_branch(text)


def test_what_no_schema_carries_is_traced_into(tmp_path: Path) -> None:
    params = '{x: "Tensor[n]", thing: "object | None"}'
    text = generated(tmp_path, params=params, returns="Tensor[n]")
    assert op_call(text)[1] == "(Tensor x) -> Tensor[]"
    assert traced_branch(text).startswith("if is_compiling() and thing is None:")
    assert "if not is_compiling():" in text, "such a call must not count while it is traced"


def test_a_tier_that_only_serves_what_becomes_an_op_asks_no_more(tmp_path: Path) -> None:
    params = '{x: "Tensor[n]", thing: "object | None"}'
    text = generated(
        tmp_path,
        params=params,
        returns="Tensor[n]",
        more="traced: true",
        tiers='  - {name: fast, impl: "json:loads", when: {thing: none}}\n',
    )
    function = ast.unparse(next(f for f in ast.parse(text).body if getattr(f, "name", "") == "op"))
    fast, golden = function.split("if thing is None:")[1].split("kernel_fast")
    assert "is_compiling" not in fast and "if not is_compiling():" in golden


def test_a_fake_of_its_own(tmp_path: Path) -> None:
    more = 'traced: true\nfake: "json:loads"'
    text = generated(tmp_path, params='{x: "Tensor[n]"}', returns="Tensor[n]", more=more)
    assert "from json import loads as fake_results" in text and "return fake_results(x)" in text


def test_one_that_is_not_traced_has_no_op(tmp_path: Path) -> None:
    text = generated(tmp_path, params='{x: "Tensor[n]"}', returns="Tensor[n]", more="")
    assert "traced" not in text and "if not is_compiling():" in text


def test_an_argument_that_no_op_can_carry(tmp_path: Path) -> None:
    params = '{x: "Tensor[n]", thing: "object"}'
    with pytest.raises(AdaptError, match="op: an op cannot carry thing"):
        generated(tmp_path, params=params, returns="Tensor[n]")


@pytest.mark.parametrize(
    ("recipe", "says"),
    [
        ({"more": 'fake: "json:loads"'}, "fake is for an operator that is traced"),
        ({"returns": "Tensor[n]", "mutates": "[x, y]"}, "writes into several parameters"),
        ({"returns": "None", "mutates": "[out]"}, "may lack what it writes into only if"),
        (
            {"returns": "None", "mutates": "[x]", "more": 'traced: true\nfake: "json:loads"'},
            "fake is for an operator that makes its results",
        ),
    ],
)
def test_what_a_traced_recipe_may_not_say(
    tmp_path: Path, recipe: dict[str, str], says: str
) -> None:
    params = '{x: "Tensor[n]", y: "Tensor[n]", out: "Tensor[n] | None"}'
    root = workspace(tmp_path, **{"params": params, "returns": "Tensor[n]", **recipe})
    found = load_catalog(root).findings
    assert len(found) == 1 and says in found[0].message

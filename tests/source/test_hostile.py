"""Strings from YAML stay strings and comments in generated code, whatever they hold."""

from __future__ import annotations

import ast
import json
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from kunlun_adapt.documents import load_catalog
from kunlun_adapt.source import compile_plan, template_folder
from kunlun_adapt.source.text import distinct
from tests.source.conftest import ROOT, Compile, plan_of

HOSTILE = [
    'x"""\nimport os; os.system("true")\n"""',
    "x\n    import os\n",
    "x\r\nraise SystemExit",
    "x\u2028raise SystemExit\u2029y",
    "x\x0craise SystemExit",
    "{{ 7 * 7 }}{% for x in y %}",
    "'); import os; ('",
    "\\",
    "ends with a backslash \\",
    "\u202e reversed",
]


def copy_with(tmp_path: Path, replacements: Mapping[str, str]) -> Path:
    """Copy the shipped workspace; each replaced text must stand in it."""
    root = tmp_path / "workspace"
    shutil.copytree(ROOT / "operator_recipes", root / "operator_recipes")
    text = (ROOT / "platform_map.yaml").read_text(encoding="utf-8")
    for old, new in replacements.items():
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    (root / "platform_map.yaml").write_text(text, encoding="utf-8")
    return root


def shapes(modules: Mapping[str, str]) -> dict[str, str]:
    """The modules' trees with every text constant blanked."""

    class Blank(ast.NodeTransformer):
        def visit_Constant(self, node: ast.Constant) -> ast.Constant:
            return ast.Constant("") if isinstance(node.value, str) else node

    return {name: ast.dump(Blank().visit(ast.parse(text))) for name, text in modules.items()}


@pytest.mark.parametrize("hostile", HOSTILE)
def test_a_hostile_reason_or_value_changes_no_statement(
    compiled: Compile, tmp_path: Path, hostile: str
) -> None:
    quoted = json.dumps(hostile)
    root = copy_with(
        tmp_path,
        {
            "why: the vendor's paged kernels are tuned for pages of 128 tokens": f"why: {quoted}",
            'name: XPU_USE_DEFAULT_CTX, default: "1"': (
                f"name: XPU_USE_DEFAULT_CTX, default: {quoted}"
            ),
            "why: --attention-backend refuses names that are not in upstream's list": (
                f"why: {quoted}"
            ),
            "reports_as: cuda,": f"reports_as: {quoted},",
        },
    )
    modules = compile_plan(plan_of(root, "0.5.19", "card"), template_folder(root)).modules
    assert shapes(modules) == shapes(compiled("0.5.19", "card").modules)
    assert repr(hostile) == ascii(hostile) or ascii(hostile) in modules["bindings"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("name: kunlun\nsglang", "name: 'a; import os'\nsglang"),
        ("method: get_dispatch_key_name", "method: 'f(self): import os #'"),
        ("dispatch_key: cuda,", 'dispatch_key: "cuda\' or 1",'),
        ("field: device_name", "field: 'x = 1; y'"),
        ("probe: {module: torch_xmlir}", "probe: {module: 'torch_xmlir as x'}"),
        ("id: worker-affinity", "id: 'a b'"),
        ("name: kunlun\nsglang", "name: lambda\nsglang"),
        ("args: {gpu_id: gpu_id}}", "args: {gpu_id: 'gpu_id or 1'}}"),
    ],
)
def test_what_becomes_a_name_must_be_one(tmp_path: Path, old: str, new: str) -> None:
    catalog = load_catalog(copy_with(tmp_path, {old: new}))
    assert [f.code for f in catalog.findings] == ["KA002"]


def test_names_that_differ_in_punctuation_only_stay_apart(tmp_path: Path) -> None:
    root = copy_with(
        tmp_path,
        {
            "  - id: last-loc\n": "  - id: worker_affinity\n    why: a namesake\n    type: around\n"
            "    impl: 'json:dumps'\n    at: [{target: sglang.srt.utils.common.support_triton, "
            "args: {backend: backend}}]\n  - id: last-loc\n"
        },
    )
    hooks = compile_plan(plan_of(root, "0.5.19", "card"), template_folder(root)).modules["hooks"]
    assert "def read_worker_affinity(" in hooks and "def read_worker_affinity_2(backend):" in hooks
    assert hooks.count("read=read_worker_affinity,") == 1
    assert hooks.count("read=read_worker_affinity_2,") == 1


def test_tiers_and_places_of_one_spelling_stay_apart(tmp_path: Path) -> None:
    root = copy_with(tmp_path, {})
    recipe = root / "operator_recipes" / "activation.yaml"
    text = recipe.read_text(encoding="utf-8")
    tier = (
        "  - name: xpu.swiglu\n    impl: 'kunlun_adapt.golden.activation:silu_and_mul'\n"
        "    when: {x.dtype: float64}\n"
    )
    text = text.replace("  - {name: golden, fallback", f"{tier}  - {{name: golden, fallback")
    recipe.write_text(text, encoding="utf-8")
    modules = compile_plan(plan_of(root, "0.5.19", "card"), template_folder(root)).modules
    silu = modules["operators/silu_and_mul"]
    assert "swiglu as kernel_xpu_swiglu\n" in silu
    assert "silu_and_mul as kernel_xpu_swiglu_2\n" in silu


@pytest.mark.parametrize(
    ("names", "made"),
    [(["a-b", "a.b", "a_b"], ["a_b", "a_b_2", "a_b_3"]), (["x_2", "x", "x"], ["x_2", "x", "x_3"])],
)
def test_distinct(names: list[str], made: list[str]) -> None:
    assert distinct(names) == made

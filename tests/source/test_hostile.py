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
    for folder in ("operator_recipes", "recipes"):
        shutil.copytree(ROOT / folder, root / folder)
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
            "card: {reports_as: cuda,": f"card: {{reports_as: {quoted},",
        },
    )
    modules = compile_plan(plan_of(root, "0.5.19", "card"), template_folder(root)).modules
    assert shapes(modules) == shapes(compiled("0.5.19", "card").modules)
    assert repr(hostile) == ascii(hostile) or ascii(hostile) in modules["bindings"]


@pytest.mark.parametrize("hostile", HOSTILE[::3])
def test_hostile_text_beside_a_hook_changes_no_statement(
    compiled: Compile, tmp_path: Path, hostile: str
) -> None:
    quoted = json.dumps(hostile)
    root = copy_with(
        tmp_path,
        {
            "    remove_when: upstream asks the platform for affinity\n": (
                f"    remove_when: {quoted}\n"
                f"    accepts: [{{code: KA108, why: {quoted}}}]\n"
                f"    excluded: [{{sglang: '>=9', why: {quoted}}}]\n"
                "    watch: [sglang.srt.utils.common.support_triton]\n"
            ),
            "served: {simulator: false, why: upstream calls it only where "
            "SGLANG_SET_CPU_AFFINITY is set}": f"served: {{simulator: false, why: {quoted}}}",
        },
    )
    modules = compile_plan(plan_of(root, "0.5.19", "card"), template_folder(root)).modules
    assert shapes(modules) == shapes(compiled("0.5.19", "card").modules)


@pytest.mark.parametrize("hostile", HOSTILE[::3])
def test_a_hostile_planned_hook_leaves_the_code_alone(
    compiled: Compile, tmp_path: Path, hostile: str
) -> None:
    quoted = json.dumps(hostile)
    root = copy_with(
        tmp_path,
        {
            "  - id: last-loc\n": f"  - id: later\n    why: {quoted}\n    status: planned\n"
            f"    type: set\n    value: {quoted}\n"
            f"    at: [{{target: torch.cuda.x, package: {quoted}}}]\n"
            "  - id: last-loc\n"
        },
    )
    modules = compile_plan(plan_of(root, "0.5.19", "card"), template_folder(root)).modules
    changed, shipped = shapes(modules), shapes(compiled("0.5.19", "card").modules)
    # The counts say that there is one more that is planned; nothing else does.
    assert {name for name in shipped if shipped[name] != changed[name]} == {"bindings"}
    lines = [
        line
        for line in modules["bindings"].splitlines()
        if not line.startswith(("COUNTS", "    # platform_map.yaml:"))
    ]
    assert set(lines) <= set(compiled("0.5.19", "card").modules["bindings"].splitlines())


@pytest.mark.parametrize("value", ["$any", "$grid", "$key", "${x}", "$any or 1"])
def test_a_value_with_a_dollar_is_a_value(tmp_path: Path, value: str) -> None:
    root = copy_with(tmp_path, {"ignores: [pp_size, tp_size, nnodes]}": (
        f"ignores: {{pp_size: {value!r}, tp_size: $any, nnodes: $any}}}}"
    )})  # fmt: skip
    hooks = compile_plan(plan_of(root, "0.5.19", "card"), template_folder(root)).modules["hooks"]
    assert ("    if pp_size" in hooks) is (value != "$any")
    assert value == "$any" or f"    if pp_size != {value!r}:\n" in hooks


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            '    family: host\n    type: replace\n    impl: "kunlun_adapt.hooks.host:set_',
            "    family: 'x y'\n    type: replace\n    impl: \"kunlun_adapt.hooks.host:set_",
        ),
        ("    remove_when: upstream asks", "    watch: ['a b']\n    remove_when: upstream asks"),
        ("    remove_when: upstream asks", "    runs_after: ['#']\n    remove_when: upstream asks"),
        ("    remove_when: upstream asks", "    status: 'active#'\n    remove_when: upstream asks"),
        (
            '{sglang: ">=0.5.21", target: sglang.srt.utils.common.set_gpu_proc_affinity,',
            "{provided_by: 'x; y', sglang: \">=0.5.21\", target: sglang.x,",
        ),
        ("name: kunlun\nsglang", "name: 'a; import os'\nsglang"),
        ("method: get_dispatch_key_name", "method: 'f(self): import os #'"),
        (
            "cuda, dispatch_key: cuda, distributed_backend: nccl",
            'cuda, dispatch_key: "cuda\' or 1", distributed_backend: nccl',
        ),
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

"""What a generated dispatch function does before it calls a kernel: little, and in a safe order."""

from __future__ import annotations

import ast
import shutil
from pathlib import Path

import pytest

from kunlun_adapt.source import compile_plan, template_folder
from kunlun_adapt.source.operators import FunctionText
from tests.source.conftest import ROOT, Compile, plan_of

RECIPE = """\
apiVersion: kunlun-adapt/v1
kind: OperatorRecipe
name: op
family: test
why: a test
golden: "json:dumps"
params: {params}
returns: "Tensor[n]"
capture: safe
serves: [kv_pool.mha]
kernels:
{tiers}
  - {{name: golden, fallback: true}}
otherwise: error
"""


def own(folder: Path, params: str, *whens: str) -> str:
    """Return the operator's own function, with a tier for each `when`."""
    shutil.copy2(ROOT / "platform_map.yaml", folder / "platform_map.yaml")
    (folder / "operator_recipes").mkdir()
    tiers = "\n".join(
        f'  - {{name: tier{i}, impl: "json:loads", when: {{{when}}}}}'
        for i, when in enumerate(whens)
    )
    text = RECIPE.format(params=params, tiers=tiers)
    (folder / "operator_recipes" / "op.yaml").write_text(text, encoding="utf-8")
    made = compile_plan(plan_of(folder, "0.5.19", "simulator"), template_folder(ROOT))
    functions = ast.parse(made.modules["operators/op"]).body
    return next(ast.unparse(f) for f in functions if getattr(f, "name", "") == "op")


def test_a_dtype_is_read_once_and_compared_as_it_is(tmp_path: Path) -> None:
    text = own(
        tmp_path,
        '{x: "Tensor[n]", y: "Tensor[n]"}',
        "x.dtype: [float16, bfloat16], y.dtype: float16",
        "x.dtype: float32",
    )
    assert text.count("x.dtype") == 1 and "    x_dtype = x.dtype\n" in text
    assert "if (x_dtype is float16 or x_dtype is bfloat16) and y.dtype is float16:" in text
    assert "if x_dtype is float32:" in text


def test_what_may_be_absent_is_read_where_it_is_there(tmp_path: Path) -> None:
    when = "y: present, y.dtype: [float16, bfloat16]"
    text = own(tmp_path, '{x: "Tensor[n]", y: "Tensor[n] | None"}', when, when)
    assert text.count("if y is not None and y.dtype in (float16, bfloat16):") == 2


def test_a_parameter_keeps_its_name(tmp_path: Path) -> None:
    params = '{x: "Tensor[n]", x_dtype: "object | None"}'
    text = own(tmp_path, params, "x.dtype: [float16, float32], x_dtype: none")
    assert "x_dtype =" not in text
    assert "if x_dtype is None and x.dtype in (float16, float32):" in text


def test_many_dtypes_are_looked_for_in_one_line(tmp_path: Path) -> None:
    dtypes = "[float16, bfloat16, float32, float64, int8]"
    text = own(tmp_path, '{x: "Tensor[n]"}', f"x.dtype: {dtypes}")
    assert "if x_dtype in (float16, bfloat16, float32, float64, int8):" in text


def test_what_only_compares_a_name_comes_first_and_the_rest_as_written(tmp_path: Path) -> None:
    text = own(
        tmp_path,
        '{x: "Tensor[n, m]", how: "str", on: "bool", y: "Tensor[n] | None"}',
        "x.ndim: 2, 'x.shape[1]': 4, how: fast, on: true, y: none",
    )
    wanted = "if on is True and y is None and (x.ndim == 2) and (x.shape[1] == 4) and (how =="
    assert wanted in text


@pytest.mark.parametrize(
    ("assignments", "text"),
    [
        ((("a", "self.x"), ("b", "None")), "a = self.x\nb = None"),
        ((("a", "b"), ("b", "c")), "a = b\nb = c"),
        ((("a", "b"), ("b", "a")), "a, b = b, a"),
        ((("a", "b"), ("c", "a.weight")), "a, c = b, a.weight"),
    ],
)
def test_no_name_is_overwritten_before_it_is_read(
    assignments: tuple[tuple[str, str], ...], text: str
) -> None:
    function = FunctionText("f", (), "", "", (), assignments, None, "")
    assert function.assignment == text
    long = tuple((f"{a}_{'z' * 40}", f"{b}_{'z' * 40}") for a, b in (("a", "b"), ("b", "a")))
    swapped = FunctionText("f", (), "", "", (), long, None, "").assignment
    assert ast.unparse(ast.parse(swapped)).startswith("a_") and swapped.count("\n") == 6


@pytest.mark.parametrize("profile", ["card", "simulator"])
def test_a_call_that_becomes_an_op_is_the_only_one_to_ask(compiled: Compile, profile: str) -> None:
    """Past that branch a tier asks only where torch.compile may have come so far."""
    for name, text in compiled("0.5.19", profile).modules.items():
        for function in ast.walk(ast.parse(text)):
            if isinstance(function, ast.FunctionDef) and name == "operators/rms_norm":
                asked = ast.unparse(function).count("is_compiling()")
                assert asked == (2 if function.name.startswith("bind_") else 0), function.name

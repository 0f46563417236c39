"""`explain`: which tier serves which call, and what it says of a binding that is not bound."""

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import Edit, Run


def calls(*texts: str) -> list[str]:
    return [part for text in texts for part in ("--call", text)]


@pytest.mark.parametrize(
    ("operator", "call", "tier"),
    [
        ("rms_norm", ["x=bfloat16[7,512]"], "xpu_rmsnorm"),
        ("rms_norm", ["x=bfloat16[7,512]", "cast_first=true"], "golden"),
        ("rms_norm", ["x=bfloat16[7,512]", "residual=bfloat16[7,512]"], "xpu_add_rmsnorm"),
        ("rms_norm", ["x=bfloat16[ 7, 512 ]", "residual=none"], "xpu_rmsnorm"),
        ("moe_topk", ["logits=float32[4,8]", "scoring=softmax"], "xpu_softmax_topk"),
        ("moe_topk", ["logits=float32[4,8]", "scoring=sigmoid"], "golden"),
        # Whatever is open where no tier can come before it does not matter.
        ("rotary_embedding", ["query=int8[4,64]"], "golden"),
        ("store_kv_cache", ["key=int8[4,2,64]", "value=int8[4,2,64]"], "golden"),
        ("store_kv_cache", ["key=bfloat16[4,2,64]", "value=bfloat16[4,2,64]"], "xpu_store_flash"),
        (
            "store_kv_cache",
            [
                "key=bfloat16[4,2,64]",
                "value=bfloat16[4,2,64]",
                "op.kunlun_ops.reshape_and_cache_flash=none",
            ],
            "xpu_store_reshape",
        ),
    ],
)
def test_the_tier_that_serves_a_call(run: Run, operator: str, call: list[str], tier: str) -> None:
    result = run("explain", operator, *calls(*call), "--format", "json")
    assert json.loads(result.stdout)["call"]["tier"] == tier


def test_what_the_answer_takes_for_granted_is_said(run: Run) -> None:
    result = run("explain", "rms_norm", *calls("x=bfloat16[7,512]", "cast_first=false"))
    assert result.stdout.splitlines()[1:] == ["    taken for granted: fp32_residual false"]


@pytest.mark.parametrize(
    ("operator", "call", "wanted"),
    [
        ("moe_topk", ["logits=float32[4,8]"], "--call scoring=TEXT"),
        (
            "rotary_embedding",
            ["query=bfloat16[4,64]", "head_size=64"],
            "--call cos_sin_cache=DTYPE[SIZES] --call rotary_dim=NUMBER",
        ),
    ],
)
def test_a_call_that_leaves_the_tier_open_is_refused(
    run: Run, operator: str, call: list[str], wanted: str
) -> None:
    result = run("explain", operator, *calls(*call))
    assert result.exit_code == 2 and result.stdout == ""
    assert f"try: {wanted}\n" in result.stderr


@pytest.mark.parametrize(
    ("operator", "call", "fault"),
    [
        ("silu_and_mul", ["x=none"], "x is required"),
        ("silu_and_mul", ["x=bfloat16[7,,,11008]"], "x is a tensor"),
        ("silu_and_mul", ["x=bfloat16[-7,512]"], "x is a tensor"),
        ("silu_and_mul", ["x=bfloat16[-7,512]"], "and '-7' is no size"),
        ("silu_and_mul", ["x=bfloat16[7,,512]"], "and '' is no size"),
        ("silu_and_mul", ["x=bfloat16[7,512"], "and its bracket is not closed"),
        ("silu_and_mul", ["x=bfloat16[7,512]]"], "and ']' follows its bracket"),
        ("silu_and_mul", ["x=[7,512]"], "and its dtype is missing"),
        ("silu_and_mul", ["x=bf16[7,512]"], "bf16 is no dtype"),
        ("silu_and_mul", ["out=none"], "the call has no tensor"),
        ("silu_and_mul", ["x=bfloat16[7,512]", "x=none"], "x is given twice"),
        ("moe_topk", ["logits=float32[8]"], "logits has 2 dimensions: tokens, experts"),
        ("moe_topk", ["logits=float32[4,8]", "topk=many"], "topk is declared int"),
        ("moe_topk", ["logits=float32[4,8]", "topk=true"], "topk is declared int"),
        ("moe_topk", ["logits=float32[4,8]", "topk=int8[1]"], "topk is declared int"),
        ("moe_topk", ["logits=float32[4,8]", "renormalise=1"], "renormalise is declared bool"),
        ("moe_topk", ["logits=float32[4,8]", "scoring="], "scoring is empty"),
        ("worker-affinity", ["x=bfloat16[7,512]"], "--call is for operators"),
        ("KA105", ["x=bfloat16[7,512]"], "--call is for operators"),
    ],
)
def test_what_is_no_call_is_refused(run: Run, operator: str, call: list[str], fault: str) -> None:
    result = run("explain", operator, *calls(*call))
    assert result.exit_code == 2 and result.stdout == ""
    assert fault in result.stderr


def test_the_recipe_s_cases(run: Run, edit: Edit) -> None:
    assert "    bfloat16[33, 4096]: xpu_rmsnorm\n" in run("explain", "rms_norm").stdout
    root = edit(
        {"otherwise: error": "otherwise: error\ncases: {logits: [[4, 8]]}"},
        file="operator_recipes/moe.yaml",
    )
    arguments = ("explain", "moe_topk", "--workspace", root)
    assert "    float32[4, 8]: depends on scoring\n" in run(*arguments).stdout
    cases = json.loads(run(*arguments, "--format", "json").stdout)["cases"]
    assert {(case["tier"], *case["depends_on"]) for case in cases} == {(None, "scoring")}


def test_a_binding_that_is_not_bound(run: Run) -> None:
    name = "gate_sigmoid_mul/fused_gate_sigmoid_mul"
    shown = run("explain", name, "--sglang", "0.5.17").stdout
    assert "status      excluded\n" in shown
    assert "status why  the gate without the sum came with 0.5.19\n" in shown
    assert "served      no\n" in shown
    assert "simulator" not in shown and "the lock has no" not in shown
    assert "status      bound\n" in run("explain", name, "--sglang", "0.5.19").stdout


@pytest.mark.parametrize("name", ["KA101", "ka101", "Ka101"])
def test_a_code_s_page(run: Run, name: str) -> None:
    result = run("explain", name)
    assert result.exit_code == 0 and result.stdout.startswith("# KA101: target-missing\n")
    assert "## How to mend it" in result.stdout and result.stderr == ""


def test_a_code_s_page_on_a_terminal(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    shown = run("explain", "KA101").stdout
    assert "\x1b[" in shown and "target-missing" in shown and "## How" not in shown


@pytest.mark.parametrize(
    ("name", "near"), [("ka1o5", "KA105"), ("KA1011", "KA101"), ("KA41", "KA401")]
)
def test_a_code_that_does_not_exist(run: Run, name: str, near: str) -> None:
    result = run("explain", name, "--sglang", "0.5.19")
    assert result.exit_code == 2 and result.stdout == ""
    assert f"nothing is called '{name}'" in result.stderr
    assert near in result.stderr.partition("did you mean")[2]


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("nosuch", ""),
        ("frobnicate", ""),
        ("silu_mul", "silu_and_mul"),
        ("affinity", "worker-affinity"),
        ("graph_runer", "factory/graph_runner"),
    ],
)
def test_only_what_is_like_a_name_is_proposed(run: Run, name: str, near: str) -> None:
    result = run("explain", name, "--sglang", "0.5.19", "--quiet")
    assert result.exit_code == 2 and f"nothing is called '{name}'" in result.stderr
    proposed = result.stderr.partition("did you mean ")[2].strip(" ?\n").split(", ")
    assert proposed[0] == near, result.stderr


@pytest.mark.parametrize(
    ("key", "id"),
    [
        ("kv_pool.mha", "factory/kv_pool.mha"),
        ("factories.kv_pool.mha", "factory/kv_pool.mha"),
        ("capabilities.graph_capture", "factory/capabilities.graph_capture"),
        ("methods.get_device", "method/get_device"),
        ("method/get_device", "method/get_device"),
        ("worker-affinity", "worker-affinity"),
    ],
)
def test_a_binding_goes_by_its_id_and_by_its_key_in_the_map(run: Run, key: str, id: str) -> None:
    result = run("explain", key, "--sglang", "0.5.19", "--format", "json")
    assert json.loads(result.stdout)["id"] == id


def test_an_operator_whose_golden_is_to_come(run: Run) -> None:
    assert "golden: none yet\n" in run("explain", "copy_token_range").stdout
    assert "golden: kunlun_adapt.golden" in run("explain", "rms_norm").stdout

"""`diff` as a user calls it: on a real pair of releases, and on a small one."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from kunlun_adapt.cli import app
from tests.check.bench import Bench
from tests.cli.conftest import ROOT, Run
from tests.evolve.diffs import Pair

COMMON = "sglang/srt/utils/common.py"
KERNELS = "sglang/kernels/ops/activation.py"


@pytest.fixture(scope="module")
def body() -> dict[str, Any]:
    """The real pair's diff for the shipped workspace, made once."""
    result = CliRunner().invoke(
        app, ["diff", "0.5.19", "0.5.23", "--format", "json", "--workspace", str(ROOT)]
    )
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


@pytest.fixture
def small(tmp_path: Path) -> list[str]:
    """A small pair of releases and their workspace, as arguments."""
    pair = Pair.of(Bench(tmp_path)).edit(
        KERNELS, "return input\n\n        @triton.jit", "return 1\n\n        @triton.jit"
    )
    pair = pair.edit(COMMON, "tp_size, nnodes=1)", "tp_size, ranks, nnodes=1)")
    for bench in (pair.old, pair.new):
        bench.resolver()
    pair.new.catalog()
    folders = [str(bench.root / "release") for bench in (pair.old, pair.new)]
    return ["diff", *folders, "--workspace", str(pair.new.root / "workspace")]


def change(body: dict[str, Any], subject: str) -> dict[str, Any]:
    (found,) = [c for c in body["changes"] if c["subject"] == subject]
    return found


def facts(change: dict[str, Any]) -> dict[str, str]:
    return {f["aspect"]: f["text"] for f in change["facts"]}


@pytest.mark.upstream
def test_what_is_known_to_have_changed(body: dict[str, Any]) -> None:
    assert body["schema"] == 1 and (body["old"], body["new"]) == ("0.5.19", "0.5.23")
    pools = change(body, "get_mha_kv_pool_cls")
    assert facts(pools)["spelling"] == "the key kv_pool.mha is spelled get_kv_pool_cls now"
    assert pools["followed"] and pools["risk"] == "low"
    fp8 = change(body, "supports_fp8")
    assert "left out" in facts(fp8) and fp8["risk"] == "low"
    affinity = change(body, "sglang.srt.utils.common.set_gpu_proc_affinity")
    assert facts(affinity)["signature"].startswith("without pp_size, tp_size, nnodes:")
    assert facts(affinity)["calls"].startswith(("configure_scheduler_process", "latency_test"))
    verify = change(body, "sglang.srt.speculative.eagle_worker_v2.EAGLEWorkerV2.verify")
    assert "pp_proxy_tensors before what was there" in facts(verify)["signature"]
    detokenizer = change(body, "detokenizer")
    assert facts(detokenizer) == {"plugins": "the detokenizer loads plugins now"}
    for subject, landing in (
        ("qsa", "feature"),
        ("minimax_m3_nvfp4", "feature"),
        ("Glm5NextForConditionalGeneration", "feature"),
        ("capabilities.supports_pynccl", "platform"),
        ("speculative_skip_dp_mlp_sync", "server_args"),
        ("SGLANG_DSA_FUSE_TOPK", "environment"),
    ):
        assert change(body, subject)["landing"] == landing
    assert facts(change(body, "qsa"))["added"].startswith("new attention backend since 0.5.19:")
    assert detokenizer["stated"].startswith("platform_map.yaml:")
    choices = change(body, "sglang.srt.arg_groups.choices.ATTENTION_BACKEND_CHOICES")
    assert choices["bindings"][0] == "attention-backend-choice" and choices["followed"]
    assert "@@ -" in choices["code"]
    assert "adds 'qsa'" in facts(choices)["value"]


@pytest.mark.upstream
def test_what_the_page_shows_is_what_it_prints(run: Run) -> None:
    page = (ROOT / "docs" / "diff.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"^```text\n\$ kunlun-adapt (.*?)\n(.*?)^```$", page, re.M | re.S)
    printed = run(*shlex.split(shown[0]), "--workspace", str(ROOT)).stdout
    at = 0
    for part in re.split(r"^…\n", shown[1], flags=re.M):
        assert part.strip("\n") in printed[at:], part
        at = printed.index(part.strip("\n"), at)


@pytest.mark.upstream
def test_what_is_bound_and_locked_is_ticked_off(body: dict[str, Any]) -> None:
    steps = {step["title"].partition(":")[0]: step for step in body["checklist"]}
    affinity = steps["sglang.srt.utils.common.set_gpu_proc_affinity"]
    assert affinity["done"] and affinity["findings"] == []
    bound = {c["id"] for c in body["changes"] if c["status"] == "bound"}
    assert not [
        s["title"]
        for s in body["checklist"]
        if not s["done"] and bound & {*s["changes"]} and s["risk"] == "high"
    ]


@pytest.mark.upstream
@pytest.mark.full
def test_an_old_release_without_a_platform(run: Run) -> None:
    body = json.loads(run("diff", "0.5.9", "0.5.19", "--format", "json", "--quiet").stdout)
    assert facts(change(body, "get_default_attention_backend"))["added"].startswith(
        "new since 0.5.9"
    )


def test_it_goes_by_the_ending_of_the_file(run: Run, small: list[str], tmp_path: Path) -> None:
    starts = {
        "x.md": "# SGLang 0",
        "x.json": '{\n  "schema": 1',
        "x.html": "<!doctype html>",
        "x.txt": "sglang 0",
    }
    for name, start in starts.items():
        result = run(*small, "--output", str(tmp_path / name))
        assert result.exit_code == 0 and result.stdout == ""
        assert (tmp_path / name).read_text(encoding="utf-8").startswith(start)
        assert f"written to {tmp_path / name}: sglang 0.5.18 to 0.5.19" in result.stderr
    odd = run(*small, "--output", str(tmp_path / "z.pdf"), "--format", "json")
    assert odd.exit_code == 0 and json.loads((tmp_path / "z.pdf").read_text(encoding="utf-8"))
    forced = run(*small, "--output", str(tmp_path / "y.html"), "--format", "json")
    assert forced.exit_code == 0 and json.loads((tmp_path / "y.html").read_text(encoding="utf-8"))


def test_text_and_its_switches(run: Run, small: list[str]) -> None:
    plain = run(*small).stdout
    assert "Operators: 1 medium" in plain and "body: the body changed (+1 −1)" in plain
    assert "| @@" not in plain and "| @@ -" in run(*small, "--code").stdout
    only = run(*small, "--family", "activation").stdout
    assert "Operators: 1 medium" in only and "Hooks" not in only
    still = run(*small, "--family", "platform")
    assert still.exit_code == 0 and "nothing changed for this workspace" in still.stdout


def test_a_way_back_is_remarked(run: Run, small: list[str]) -> None:
    back = ["diff", small[2], small[1], *small[3:]]
    assert "OLD is newer than NEW" in run(*back).stderr
    assert "OLD is newer than NEW" not in run(*back, "--quiet").stderr
    assert "OLD is newer than NEW" not in run(*small).stderr


def test_check_fails_while_a_step_is_open(run: Run, small: list[str]) -> None:
    assert run(*small).exit_code == 0
    result = run(*small, "--check")
    assert result.exit_code == 1 and "[ ]" in result.stdout
    release, workspace = small[2], small[4]
    assert f"kunlun-adapt lock --workspace {workspace} --sglang {release}" in result.stdout
    same = run("diff", release, release, *small[3:], "--quiet")
    assert "nothing changed for this workspace" in same.stdout


def test_what_cannot_be_done(run: Run, small: list[str]) -> None:
    for arguments, said in (
        ((*small[:2], "0.5.1999", "--offline", *small[3:]), "0.5.1999"),
        ((*small[:2], " ", *small[3:]), "no release is named"),
        ((*small[:2], *small[3:]), "Missing argument 'NEW'"),
        ((*small, "--family", "nothing"), "there is no 'nothing'; one of activation, "),
        ((*small, "--family", "activatoin"), "there is no 'activatoin'; did you mean activation?"),
        ((*small, "--output", "x.pdf"), ".pdf names no format"),
        ((*small, "--output", "/nowhere/at/all.md"), "/nowhere/at"),
    ):
        result = run(*arguments)
        assert result.exit_code == 2 and said in " ".join(result.stderr.replace("│", " ").split())


def test_faulty_documents_are_refused(run: Run, small: list[str]) -> None:
    document = Path(small[4]) / "platform_map.yaml"
    text = document.read_text(encoding="utf-8")
    document.write_text(text.replace("kind: PlatformMap", "kind: PlatformMop"), encoding="utf-8")
    result = run(*small)
    assert result.exit_code == 2 and "kunlun-adapt validate" in result.stderr

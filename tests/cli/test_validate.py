"""`validate` on real releases: the findings of the issue's own examples, and the exit codes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cli.conftest import Edit, Run

pytestmark = pytest.mark.upstream

AFFINITY = "target: sglang.srt.utils.common.set_gpu_proc_affinity, args: {gpu_id: gpu_id}, ignores"


def line_of(root: object, text: str) -> int:
    from pathlib import Path

    lines = (Path(str(root)) / "platform_map.yaml").read_text(encoding="utf-8").splitlines()
    return next(i for i, line in enumerate(lines, 1) if text in line)


def grave(report: dict[str, Any]) -> list[dict[str, Any]]:
    """What is more than information, such as that a binding is planned."""
    return [f for f in report["findings"] if f["severity"] != "info"]


def test_the_shipped_claims_hold(run: Run) -> None:
    result = run(
        "validate", "--sglang", "0.5.17", "--sglang", "0.5.19", "--sglang", "0.5.23",
        "--format", "json",
    )  # fmt: skip
    body = json.loads(result.stdout)
    assert result.exit_code == 0, result.stdout
    assert body["schema"] == 1
    assert [r["release"] for r in body["releases"]] == ["0.5.17", "0.5.19", "0.5.23"]
    assert [f for r in body["releases"] for f in grave(r)] == []
    assert all(r["bindings"]["bound"] >= 25 for r in body["releases"])


def test_a_misspelt_target(run: Run, edit: Edit) -> None:
    root = edit({"common.support_triton,": "common.support_tritn,"})
    result = run("validate", "--workspace", root, "--sglang", "0.5.19", "--format", "json")
    (finding,) = grave(json.loads(result.stdout)["releases"][0])
    assert result.exit_code == 1
    assert finding["code"] in ("KA101", "KA102")
    assert finding["line"] == line_of(root, "support_tritn")
    assert finding["binding"] == "support-triton"
    assert "sglang.srt.utils.common.support_triton" in finding["suggestion"]


def test_a_release_that_is_not_claimed(run: Run) -> None:
    result = run("validate", "--sglang", "0.5.9", "--format", "json")
    findings = json.loads(result.stdout)["releases"][0]["findings"]
    assert result.exit_code == 1
    assert "KA009" in [f["code"] for f in findings]
    assert next(f for f in findings if f["code"] == "KA009")["file"] == "platform_map.yaml"


def test_a_release_without_the_interface(run: Run, edit: Edit) -> None:
    root = edit({'sglang: ">=0.5.17,<0.5.24"': 'sglang: ">=0.5.9,<0.5.24"'})
    result = run("validate", "--workspace", root, "--sglang", "0.5.9", "--format", "json")
    report = json.loads(result.stdout)["releases"][0]
    assert result.exit_code == 1
    assert "KA205" in [f["code"] for f in report["findings"]]
    counts = report["bindings"]
    assert (counts["bound"], counts["planned"]) == (0, 0) and counts["excluded"] > 250
    listed = run("list", "bindings", "--workspace", root, "--sglang", "0.5.9", "--format", "json")
    bindings = json.loads(listed.stdout)["bindings"]
    assert len(bindings) == counts["excluded"]
    assert {b["status"] for b in bindings} == {"excluded"}
    assert {b["why"] for b in bindings} == {
        "sglang 0.5.9 has no sglang.srt.platforms and no sglang.srt.plugins"
    }


def test_a_required_method_that_is_gone(run: Run, edit: Edit) -> None:
    root = edit(
        {
            '  paged_allocator: "kunlun_adapt.kernels.kv_cache.allocator:'
            'KunlunPagedTokenToKVPoolAllocator"\n': ""
        }
    )
    result = run("validate", "--workspace", root, "--sglang", "0.5.19", "--format", "json")
    findings = json.loads(result.stdout)["releases"][0]["findings"]
    assert result.exit_code == 1
    (unserved,) = [f for f in findings if f["code"] == "KA204"]
    assert "get_paged_allocator_cls" in unserved["message"]
    assert unserved["upstream"]["file"] == "sglang/srt/platforms/interface.py"
    assert "paged_allocator" in unserved["suggestion"]


def test_a_misspelt_key(run: Run, edit: Edit) -> None:
    root = edit({"    remove_when: upstream asks the platform for affinity": "    remove_wen: x"})
    result = run("validate", "--workspace", root, "--sglang", "0.5.19")
    assert result.exit_code == 1
    assert f"platform_map.yaml:{line_of(root, 'remove_wen')}:5: error KA003" in result.stdout
    assert "did you mean 'remove_when'?" in result.stdout


def test_an_inserted_upstream_parameter(run: Run, edit: Edit) -> None:
    root = edit({"ignores: [pp_size, tp_size, nnodes]": "ignores: [pp_size, tp_size]"})
    result = run("validate", "--workspace", root, "--sglang", "0.5.19", "--format", "json")
    (finding,) = grave(json.loads(result.stdout)["releases"][0])
    assert (result.exit_code, finding["code"]) == (1, "KA105")
    assert "nnodes" in finding["message"] and "nnodes" in finding["suggestion"]


def test_an_unknown_version_cannot_be_had(run: Run) -> None:
    result = run("validate", "--sglang", "0.5.99")
    assert result.exit_code == 2
    assert "0.5.99" in result.stderr and "try:" in result.stderr
    assert result.stdout == ""


def test_a_release_named_twice_is_checked_once(run: Run) -> None:
    arguments = ("--sglang", "0.5.23", "--sglang", "0.5.19", "--sglang", "0.5.23 ")
    body = json.loads(run("validate", *arguments, "--format", "json").stdout)
    assert [r["release"] for r in body["releases"]] == ["0.5.23", "0.5.19"]


def test_fail_on(run: Run, edit: Edit) -> None:
    root = edit({"common.support_triton,": "common.support_tritn,"})
    arguments = ("validate", "--workspace", root, "--sglang", "0.5.19", "--fail-on")
    assert run(*arguments, "never").exit_code == 0
    assert run(*arguments, "error").exit_code == 1


def test_github_annotations(run: Run, edit: Edit) -> None:
    root = edit({"common.support_triton,": "common.support_tritn,"})
    result = run("validate", "--workspace", root, "--sglang", "0.5.19", "--format", "github")
    errors = [line for line in result.stdout.splitlines() if line.startswith("::error ")]
    assert [line.partition(",")[0] for line in errors] == ["::error file=platform_map.yaml"]

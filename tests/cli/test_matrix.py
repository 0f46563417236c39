"""`matrix` as a user calls it: on real releases, and on small ones."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import ROOT, Run
from tests.evolve.matrices import COMMON, bench, release


@pytest.fixture
def small(tmp_path: Path) -> list[str]:
    """Three small releases, the last one outside the claim and broken, and their workspace."""
    made = bench(tmp_path)
    made.catalog()
    changed = made.edit(COMMON, "return gpu_id", "return 0")
    gone = made.edit(COMMON, "def set_affinity(", "def nothing_alike(")
    folders = []
    for item in (release(made, "0.5.18"), release(changed, "0.5.19"), release(gone, "0.5.30")):
        item.resolver()
        folders.append(str(item.root / "release"))
    asked = [part for folder in folders for part in ("--sglang", folder)]
    return ["matrix", "--workspace", str(tmp_path / "workspace"), "--jobs", "1", *asked]


def test_text_and_its_switches(run: Run, small: list[str]) -> None:
    result = run(*small)
    assert result.exit_code == 0, result.output
    lines = [line.split() for line in result.stdout.splitlines()]
    assert ["affinity", "holds", "changed", "excluded"] in lines
    assert "the map claims >=0.5.17,<0.5.24, not 0.5.30: --beyond-claims" in result.stderr
    assert "--beyond-claims" not in run(*small, "--quiet").stderr
    told = run(*small, "--verbose", "--state", "changed").stdout
    assert " since 0.5.18 (" not in told and "since 0.5.18: its body changed" in told
    assert "choices" not in told
    only = run(*small, "--family", "activation").stdout
    assert "silu_and_mul/SiluAndMul" in only and "affinity" not in only


def test_what_is_claimed_and_broken_fails(run: Run, small: list[str]) -> None:
    beyond = run(*small, "--beyond-claims")
    assert beyond.exit_code == 0 and "affinity: KA101:" in beyond.stdout
    document = Path(small[2]) / "platform_map.yaml"
    text = document.read_text(encoding="utf-8")
    document.write_text(text.replace("<0.5.24", "<0.5.40"), encoding="utf-8")
    result = run(*small)
    assert result.exit_code == 1 and "sglang 0.5.30: affinity: KA101:" in result.stdout
    assert run(*small, "--state", "changed").exit_code == 1
    assert run(*small, "--family", "activation").exit_code == 0


def test_counts(run: Run, small: list[str]) -> None:
    text = run(*small, "--counts", "--format", "markdown").stdout
    head, rule, *rows = text.splitlines()
    assert head == "| release | bound | planned | excluded | broken |" and rule.startswith("|---|")
    assert [line.split(" | ")[0] for line in rows] == ["| 0.5.18", "| 0.5.19", "| 0.5.30"]
    assert rows[1].endswith(" | 0 | 0 | 0 |") and rows[2].startswith("| 0.5.30 | 0 | 0 | ")
    body = json.loads(run(*small, "--counts", "--format", "json").stdout)
    assert body["schema"] == 1 and "bindings" not in body
    checked = json.loads(run("validate", *small[1:3], *small[5:9], "--format", "json").stdout)
    for mine, theirs in zip(body["releases"], checked["releases"], strict=False):
        assert mine["bindings"] == theirs["bindings"]


def test_it_goes_by_the_ending_of_the_file(run: Run, small: list[str], tmp_path: Path) -> None:
    starts = {
        "x.md": "# Bindings by release",
        "x.json": '{\n  "schema": 1',
        "x.html": "<!doctype html>",
        "x.txt": "  ",
    }
    for name, start in starts.items():
        result = run(*small, "--output", str(tmp_path / name))
        assert result.exit_code == 0 and result.stdout == ""
        assert (tmp_path / name).read_text(encoding="utf-8").startswith(start)
        assert f"written to {tmp_path / name}: " in result.stderr


def test_what_cannot_be_done(run: Run, small: list[str]) -> None:
    for arguments, said in (
        ((*small, "--sglang", "0.5.1999", "--offline"), "0.5.1999"),
        ((*small, "--sglang", " "), "no release is named"),
        ((*small, "--family", "activatoin"), "did you mean activation?"),
        ((*small, "--family", "nosuch"), "there is no 'nosuch'; one of activation, "),
        ((*small, "--family", "nosuch", "--sglang", "0.5.1999", "--offline"), "no 'nosuch'"),
        ((*small, "--output", "x.pdf"), ".pdf names no format"),
        ((*small, "--state", "fine"), "'fine' is not one of"),
        ((*small, "--output", "/nowhere/at/all.md"), "/nowhere/at"),
        ((*small, "--counts", "--format", "html"), "the page has the counts"),
        ((*small, "--jobs", "0"), "--jobs"),
    ):
        result = run(*arguments)
        assert result.exit_code == 2 and said in " ".join(result.stderr.replace("│", " ").split())


def test_without_any_release_it_says_what_to_do(
    run: Run, small: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUNLUN_ADAPT_CACHE", str(tmp_path / "cache"))
    result = run(*small[:3])
    assert result.exit_code == 2 and "give --sglang VERSION" in result.stderr


def test_faulty_documents_are_refused(run: Run, small: list[str]) -> None:
    document = Path(small[2]) / "platform_map.yaml"
    text = document.read_text(encoding="utf-8")
    document.write_text(text.replace("kind: PlatformMap", "kind: PlatformMop"), encoding="utf-8")
    result = run(*small)
    assert result.exit_code == 2 and "kunlun-adapt validate" in result.stderr


@pytest.mark.upstream
def test_what_the_page_shows_is_what_it_prints(run: Run) -> None:
    """The counts are those of the README, which are compared with what is printed elsewhere."""
    page = (ROOT / "docs" / "matrix.md").read_text(encoding="utf-8")
    shown = dict(re.findall(r"^```text\n\$ kunlun-adapt (.*?)\n(.*?)^```$", page, re.M | re.S))
    counts = shown.pop("matrix --counts")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert counts in readme
    ((command, output),) = shown.items()
    printed = run(*command.split(), "--workspace", str(ROOT)).stdout
    assert output == printed


@pytest.mark.upstream
def test_the_shipped_workspace_on_the_locked_releases(run: Run) -> None:
    versions = ("0.5.17", "0.5.19", "0.5.23")
    asked = [part for version in versions for part in ("--sglang", version)]
    result = run("matrix", "--workspace", str(ROOT), *asked, "--format", "json")
    assert result.exit_code == 0, result.output
    body: dict[str, Any] = json.loads(result.stdout)
    assert [column["release"] for column in body["releases"]] == list(versions)
    assert all(column["states"]["broken"] == 0 for column in body["releases"])
    rows = {told["id"]: [c["state"] for c in told["cells"]] for told in body["bindings"]}
    assert rows["factory/kv_pool.mha"][2] == "moved"
    assert rows["attention-backend-choice"][2] == "moved"
    assert rows["worker-affinity"][2] == "changed"
    cells = {told["id"]: told["cells"] for told in body["bindings"]}
    assert "signature (gpu_id), was" in cells["worker-affinity"][2]["changes"][0]

"""`kunlun-adapt adopt`: what it writes, says and refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import Result

from tests.cli.conftest import Run
from tests.evolve.plugin_bench import COMMON, PluginBench

OURS = "def ours(gpu_id, tp_size, nnodes=1):\n    return None\n"
GOOD = f"{OURS}\ndef register():\n    common.set_affinity = ours\n"


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    """A plugin without a fault beside the small release that it is for."""
    bench = PluginBench(tmp_path)
    bench.adopt(GOOD)
    return tmp_path / "plugin"


@pytest.fixture
def adopt(run: Run, plugin: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.chdir(plugin.parent)

    def call(*arguments: str) -> Result:
        return run("adopt", str(plugin), "--sglang", str(plugin.parent / "upstream"), *arguments)

    return call


def test_it_writes_a_workspace_that_validates_at_once(adopt: Run, run: Run, plugin: Path) -> None:
    result = adopt("--out", "made")
    assert result.exit_code == 0, result.output
    assert "ours: 2 files read for sglang 0.5.19\n" in result.stdout
    assert "taken over: 1 (0 planned): hook 1\n" in result.stdout
    assert result.stdout.endswith("wrote made/platform_map.yaml\n")
    assert "next: kunlun-adapt validate --workspace made --sglang" in result.stderr
    upstream = str(plugin.parent / "upstream")
    checked = run("validate", "--workspace", "made", "--sglang", upstream, "--format", "json")
    (release,) = json.loads(checked.stdout)["releases"]
    codes = {f["code"] for f in release["findings"] if f["binding"] == "set-affinity"}
    assert codes <= {"KA107", "KA119"}  # nothing in the small release uses it


def test_the_default_folder(adopt: Run, plugin: Path) -> None:
    assert adopt("-q").exit_code == 0
    assert (plugin.parent / "adopted" / "platform_map.yaml").is_file()


def test_json(adopt: Run) -> None:
    result = adopt("--format", "json", "-q")
    body = json.loads(result.stdout)
    assert (body["schema"], body["plugin"], body["release"]) == (1, ["ours"], "0.5.19")
    assert body["files"] == 2 and body["written"] == ["adopted/platform_map.yaml"]
    assert body["entry_points"][1] == {
        "group": "sglang.srt.plugins",
        "name": "ours",
        "object": "ours.install:register",
    }
    (binding,) = body["bindings"]
    assert binding == {
        "id": "set-affinity",
        "kind": "hook",
        "target": f"{COMMON}.set_affinity",
        "status": "active",
        "file": "ours/install.py",
        "line": 8,
    }
    assert {x["reason"] for x in body["left"]} == {"platform"}
    assert sorted(body["left"][0]) == ["bindings", "file", "line", "message", "reason"]
    assert "releases" not in body and result.stderr == ""


def test_check_writes_nothing(adopt: Run, plugin: Path) -> None:
    before = sorted(p.name for p in plugin.parent.iterdir())
    result = adopt("--check", "--format", "json", "-q")
    body = json.loads(result.stdout)
    assert body["written"] == [] and body["releases"][0]["release"] == "0.5.19"
    assert sorted(p.name for p in plugin.parent.iterdir()) == before
    # The plugin is no platform: what upstream's methods leave open is an error of the map.
    assert {f["code"] for f in body["releases"][0]["findings"]} >= {"KA204"}
    assert result.exit_code == 1


def test_check_of_hooks_alone_asks_for_no_platform(adopt: Run, plugin: Path) -> None:
    project = plugin / "pyproject.toml"
    entry = '[project.entry-points."sglang.srt.platforms"]\nours = "ours:activate"\n'
    assert entry in project.read_text()
    project.write_text(project.read_text().replace(entry, ""))
    result = adopt("--check", "-q")
    assert "KA203" not in result.stdout and "KA204" not in result.stdout
    lines = result.stdout.splitlines()
    assert lines[1] == "taken over: 1 (0 planned): hook 1"
    # With these, the number is that of `validate`.
    assert lines[2].startswith("bound beside it, as every map has them: 5: factory/device.kind, ")
    assert "sglang 0.5.19: 6 bound, 0 planned" in result.stdout


def test_check_says_what_is_broken_in_the_plugin(adopt: Run, plugin: Path) -> None:
    install = plugin / "ours" / "install.py"
    text = install.read_text().replace("tp_size, nnodes=1", "tp").replace("set_affinity", "gone")
    install.write_text(text + "    HookRegistry.register('sglang.srt.gone.f', ours)\n")
    result = adopt("--check", "-q")
    assert result.exit_code == 1
    assert "error KA101 (target-missing): sglang 0.5.19 has no sglang.srt.gone.f" in result.stdout
    assert "wrote" not in result.stdout


def test_check_against_another_release(adopt: Run, plugin: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    bench = PluginBench(other)
    bench.upstream["sglang/version.py"] = '__version__ = "0.5.23"\n'
    common = bench.upstream["sglang/srt/utils/common.py"]
    changed = common.replace("gpu_id, tp_size, nnodes=1", "gpu_id")
    bench.upstream["sglang/srt/utils/common.py"] = changed
    bench.resolver()
    args = ("--check", "-q", "--format", "json", "--against", str(other / "upstream"))
    releases = json.loads(adopt(*args).stdout)["releases"]
    assert [r["release"] for r in releases] == ["0.5.19", "0.5.23"]
    codes = [{f["code"] for f in r["findings"] if f["binding"] == "set-affinity"} for r in releases]
    assert ["KA302" in found for found in codes] == [False, True]


def test_a_folder_that_is_not_empty(adopt: Run, plugin: Path) -> None:
    made = plugin.parent / "made"
    made.mkdir()
    (made / "notes.txt").write_text("mine")
    refused = adopt("--out", "made")
    assert refused.exit_code == 2
    assert "error: made is not empty" in refused.stderr and "--force" in refused.stderr
    assert [p.name for p in made.iterdir()] == ["notes.txt"]
    (made / "operator_recipes").mkdir()
    (made / "operator_recipes" / "adopted.yaml").write_text("of an earlier run")
    assert adopt("--out", "made", "--force", "-q").exit_code == 0
    assert (made / "notes.txt").read_text() == "mine"
    assert not (made / "operator_recipes" / "adopted.yaml").exists()


def test_a_file_in_the_way(adopt: Run, plugin: Path) -> None:
    (plugin.parent / "made").write_text("mine")
    refused = adopt("--out", "made", "--force")
    assert refused.exit_code == 2 and "made is not a folder" in refused.stderr


def test_a_file_that_cannot_be_read_is_no_success(adopt: Run, plugin: Path) -> None:
    (plugin / "ours" / "broken.py").write_text("def (:\n")
    result = adopt("-q")
    assert result.exit_code == 1
    assert "ours/broken.py:1: file: is no valid Python: invalid syntax" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nowhere",), "nowhere does not exist"),
        ((".", "--against", "0.5.19"), "add --check"),
        ((".", "--sglang", "no-such-release"), "no-such-release"),
    ],
)
def test_what_cannot_be_done(
    run: Run, plugin: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], said: str
) -> None:
    monkeypatch.chdir(plugin)
    result = run("adopt", *arguments)
    assert result.exit_code == 2 and said in result.stderr
    assert not (plugin / "adopted").exists()


def test_control_characters_are_shown(adopt: Run, plugin: Path) -> None:
    install = plugin / "ours" / "install.py"
    install.write_text(install.read_text() + "    HookRegistry.register('a.\\x1b[31m', ours)\n")
    result = adopt("-q")
    assert "\x1b" not in result.stdout and "\\x1b[31m" in result.stdout


@pytest.mark.upstream
def test_the_release_that_the_plugin_pins(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    acme = Path(__file__).parents[1] / "evolve" / "plugins" / "acme"
    result = run("adopt", str(acme))
    assert result.exit_code == 0
    assert "reading it for sglang 0.5.19: the plugin asks for sglang==0.5.19\n" in result.stderr
    assert "then: kunlun-adapt validate --workspace adopted --sglang 0.5." in result.stderr

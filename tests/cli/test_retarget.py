"""`retarget` through the command line: what is printed, what is written, and what is not."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from kunlun_adapt.cli import app
from kunlun_adapt.cli import retarget as command
from kunlun_adapt.diagnostics import AdaptError
from kunlun_adapt.documents import load_catalog
from kunlun_adapt.evolve.retarget.texts import patch, read_texts, write_texts
from kunlun_adapt.upstream import open_release
from tests.check.bench import MAP, RECIPE, Bench
from tests.cli.conftest import Run

COMMON = "sglang/srt/utils/common.py"
USER = "sglang/srt/start.py"
BODY = """\
def set_affinity(gpu_id, tp_size, nnodes=1):
    count = os.cpu_count()
    share = max(1, count // tp_size)
    first = (gpu_id * share) % count
    cores = [core % count for core in range(first, first + share)]
    for core in cores:
        if core % nnodes:
            raise ValueError(f"core {core} is of another node than {nnodes}")
    os.sched_setaffinity(0, cores)
    return cores
"""
NEIGHBOUR = "def get_affinity():\n    return os.sched_getaffinity(0)\n"
IMPORT = "from sglang.srt.utils.{} import set_affinity\n\ndef start(gpu_id):\n    {}\n"
CALL = "set_affinity(gpu_id, 8)"
Retarget = Callable[..., Result]


@pytest.fixture
def workspace(tmp_path: Path, run: Run) -> Path:
    """A workspace that claims 0.5.19, and two releases: in 0.5.20 a hooked function has moved."""
    old = Bench(tmp_path).edit(
        COMMON, "def set_affinity(gpu_id, tp_size, nnodes=1):\n            return gpu_id\n", ""
    )
    old = old.add(COMMON, f"import os\n{BODY}{NEIGHBOUR}").add(USER, IMPORT.format("common", CALL))
    old = old.edit(MAP, '"<0.5.18", target', '">=0.5.17,<0.5.18", target')
    old = old.edit(MAP, 'sglang: ">=0.5.17,<0.5.24"', 'sglang: ">=0.5.19,<0.5.20"')
    # How the hook came to be there is no business of these tests.
    old.report()
    folder = tmp_path / "new"
    shutil.copytree(tmp_path / "release", folder)
    (folder / "sglang/version.py").write_text('__version__ = "0.5.20"\n')
    common = (folder / COMMON).read_text()
    (folder / COMMON).write_text(common.replace(BODY, "").replace(NEIGHBOUR, ""))
    (folder / "sglang/srt/utils/affinity.py").write_text(f"import os\n{BODY}{NEIGHBOUR}")
    (folder / USER).write_text(IMPORT.format("affinity", CALL))
    root = tmp_path / "workspace"
    locked = run("lock", "--workspace", root, "--sglang", tmp_path / "release")
    assert locked.exit_code == 0, locked.output
    return root


@pytest.fixture
def retarget(workspace: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> Retarget:
    def opened(version: str, **options: object) -> object:
        assert version == "0.5.19"
        return open_release(str(workspace.parent / "release"))

    monkeypatch.setattr(command, "open_release", opened)

    def call(*options: object) -> Result:
        return run("retarget", workspace.parent / "new", "--workspace", workspace, *options)

    return call


OLD = (
    '      - {sglang: ">=0.5.18", target: sglang.srt.utils.common.set_affinity, '
    "args: {gpu_id: gpu_id}, ignores: {tp_size: $any, nnodes: 1}}\n"
)
ENDED = OLD.replace('">=0.5.18"', '">=0.5.18,<0.5.20"')
NEW = OLD.replace("common.set", "affinity.set").replace('">=0.5.18"', '">=0.5.20"')


def texts(root: Path) -> dict[str, str]:
    return read_texts(root)


def test_nothing_is_written_unless_asked_for(retarget: Retarget, workspace: Path) -> None:
    before = texts(workspace)
    result = retarget()
    assert texts(workspace) == before
    assert "nothing is written" in result.stdout
    assert "affinity KA102" in result.stdout
    assert f"entry     {NEW.strip()}" in result.stdout
    assert "counts on" in result.stdout


def test_what_is_certain_is_applied_and_nothing_else_changes(
    retarget: Retarget, workspace: Path, run: Run
) -> None:
    before = texts(workspace)
    result = retarget("--apply")
    assert result.exit_code == 0, result.output
    after = texts(workspace)
    assert after[RECIPE] == before[RECIPE]
    wanted = before[MAP].replace(OLD, ENDED + NEW)
    wanted = wanted.replace('sglang: ">=0.5.19,<0.5.20"', 'sglang: ">=0.5.19,<0.5.21"')
    assert after[MAP] == wanted
    assert "the map claims >=0.5.19,<0.5.21, before >=0.5.19,<0.5.20" in result.stdout
    assert "before  0.5.20: 1 errors" in result.stdout
    assert "after   0.5.20: 0 errors" in result.stdout
    assert "next: kunlun-adapt lock" in result.stdout
    for release in ("release", "new"):
        place = ("--workspace", workspace, "--sglang", workspace.parent / release)
        assert run("validate", *place).exit_code == 0, release


def test_a_second_run_has_nothing_to_do(retarget: Retarget, workspace: Path) -> None:
    retarget("--apply")
    before = texts(workspace)
    result = retarget("--apply")
    assert result.exit_code == 0, result.output
    assert texts(workspace) == before
    assert "0 carried, 0 proposed, 0 left" in result.stdout


def test_a_dry_run_prints_a_patch_that_applies(retarget: Retarget, workspace: Path) -> None:
    before = texts(workspace)
    result = retarget("--dry-run")
    assert texts(workspace) == before
    assert result.stdout.startswith(f"--- a/{MAP}\n+++ b/{MAP}\n")
    git = ["git", "apply", "-p1"]
    subprocess.run(git, cwd=workspace, input=result.stdout.encode(), check=True)
    patched = texts(workspace)
    write_texts(workspace, patched, before)
    retarget("--apply")
    assert texts(workspace) == patched


def test_json(retarget: Retarget, workspace: Path) -> None:
    body = json.loads(retarget("--format", "json").stdout)
    assert body["schema"] == 1
    assert (body["release"], body["start"], body["written"]) == ("0.5.20", "0.5.19", False)
    assert body["counts"]["carried"] == 1 and body["counts"]["left"] == 0
    (account,) = [a for a in body["accounts"] if a["outcome"] == "carried"]
    assert account["binding"] == "affinity" and account["codes"] == ["KA102"]
    assert account["values"] == {"target": "sglang.srt.utils.affinity.set_affinity"}
    assert account["range"] == ">=0.5.20" and account["taken"]
    assert account["rates"][0]["wrong"] == 0 and account["confidence"] >= 0.95
    assert body["claim"] == {"before": ">=0.5.19,<0.5.20", "after": ">=0.5.19,<0.5.21"}
    assert body["patch"].startswith("--- a/")


def test_the_lock_is_written_when_asked_for(retarget: Retarget, workspace: Path) -> None:
    assert '"0.5.20"' not in (workspace / "adapt.lock").read_text()
    result = retarget("--apply", "--lock")
    assert result.exit_code == 0, result.output
    assert '"0.5.20"' in (workspace / "adapt.lock").read_text()
    assert "next:" not in result.stdout


PARAMETER = ("nnodes=1):", "nnodes=1, strict=False):")


def new_parameter(workspace: Path) -> None:
    """Upstream gives the function a parameter, and passes it."""
    place = workspace.parent / "new" / "sglang/srt/utils/affinity.py"
    place.write_text(place.read_text().replace(*PARAMETER))
    user = workspace.parent / "new" / USER
    user.write_text(user.read_text().replace("(gpu_id, 8)", "(gpu_id, 8, strict=True)"))


def test_what_upstream_passes_is_proposed_only(retarget: Retarget, workspace: Path) -> None:
    new_parameter(workspace)
    before = texts(workspace)
    # That the function moved is certain. That nobody needs the parameter is not: it is passed.
    result = retarget("--apply")
    assert result.exit_code == 1
    assert texts(workspace) == before
    assert "strict is passed in sglang 0.5.20, sglang/srt/start.py:4" in result.stdout
    # Who takes it all the same is told why it does not mend anything.
    result = retarget("--apply", "--proposals")
    assert "taken back, since it leaves KA115: upstream passes strict=True" in result.stdout
    assert texts(workspace) == before


def test_what_nobody_passes_is_ignored_at_its_default(retarget: Retarget, workspace: Path) -> None:
    new_parameter(workspace)
    user = workspace.parent / "new" / USER
    user.write_text(user.read_text().replace(", strict=True", ""))
    result = retarget("--apply")
    assert result.exit_code == 0, result.output
    assert "no call passes strict" in result.stdout
    assert NEW.replace("nnodes: 1}", "nnodes: 1, strict: false}") in texts(workspace)[MAP]


def on_a_terminal(
    retarget: Retarget, workspace: Path, monkeypatch: pytest.MonkeyPatch, answers: str
) -> Result:
    monkeypatch.setattr(command, "_terminal", lambda: True)
    place = ["retarget", str(workspace.parent / "new"), "--workspace", str(workspace)]
    return CliRunner().invoke(app, place, input=answers)


@pytest.mark.parametrize(("answer", "written"), [("y\n", True), ("n\n", False)])
def test_a_terminal_is_asked_before_anything_is_written(
    retarget: Retarget,
    workspace: Path,
    monkeypatch: pytest.MonkeyPatch,
    answer: str,
    written: bool,
) -> None:
    before = texts(workspace)
    result = on_a_terminal(retarget, workspace, monkeypatch, answer)
    assert "write this to 1 file(s)?" in result.output
    assert (texts(workspace) != before) is written
    assert ("\nwritten" in result.output) is written


def test_options_that_contradict_each_other(retarget: Retarget) -> None:
    assert retarget("--dry-run", "--apply").exit_code == 2


@pytest.mark.parametrize("given", ["", "@0.5.19+30.g1f2e3d4a5"])
def test_a_range_begins_at_a_release_only(
    retarget: Retarget, workspace: Path, run: Run, given: str
) -> None:
    new = workspace.parent / "new"
    (new / "sglang/version.py").write_text('__version__ = "0.5.19+30.g1f2e3d4a5"\n')
    place = ("--workspace", workspace)
    result = run("retarget", f"{new}{given}", *place, "--apply")
    assert result.exit_code == 2
    assert "sglang 0.5.19+30.g1f2e3d4a5 is no release" in result.stderr
    assert f"name the release that it will be: {new}@0.5.20\n" in result.stderr
    result = run("validate", "--sglang", f"{new}{given}", *place, "--beyond-claims")
    assert f"{new}@0.5.20 checks it as that" in result.stderr
    assert NEW.strip().split(", target")[0] in result.stdout
    assert run("retarget", f"{new}@0.5.20", *place, "--apply").exit_code == 0
    assert ENDED + NEW in texts(workspace)[MAP]


def test_a_wheel_has_the_release_that_it_states(
    retarget: Retarget, workspace: Path, run: Run, tmp_path: Path
) -> None:
    wheel = tmp_path / "sglang-0.5.20+cu129-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("sglang/__init__.py", "")
        archive.writestr("sglang-0.5.20+cu129.dist-info/METADATA", "Version: 0.5.20+cu129\n")
    result = run("retarget", wheel, "--workspace", workspace)
    assert result.exit_code == 2
    assert "DIR@0.5.20, where DIR is the folder that holds its sglang/" in result.stderr


def test_a_claimed_release_has_to_be_there(
    workspace: Path, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUNLUN_ADAPT_CACHE", str(tmp_path / "empty"))
    result = run("retarget", workspace.parent / "new", "--workspace", workspace, "--offline")
    assert result.exit_code == 2
    assert "no claimed release can be read" in result.output


def test_the_only_claimed_release_is_carried_nowhere(
    retarget: Retarget, workspace: Path, run: Run
) -> None:
    for locked in (True, False):
        if not locked:
            (workspace / "adapt.lock").unlink()
        result = run("retarget", workspace.parent / "release", "--workspace", workspace)
        assert result.exit_code == 2
        assert "sglang 0.5.19 is claimed already" in result.stderr
        assert "kunlun-adapt validate --sglang 0.5.19" in result.stderr


def test_a_full_disk_is_told_with_the_file(
    retarget: Retarget, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = texts(workspace)

    def full(*args: object, **kwargs: object) -> object:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    result = retarget("--apply")
    assert result.exit_code == 2
    assert f"{workspace / MAP}: No space left on device; nothing was written" in result.stderr
    assert texts(workspace) == before


def test_all_files_are_written_or_none(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = texts(workspace)
    after = {name: text + "# more\n" for name, text in before.items()}
    real, calls = os.replace, list[object]()

    def replace(source: str, target: str) -> None:
        calls.append(target)
        if len(calls) == 2:
            raise OSError(28, "No space left on device", str(target))
        real(source, target)

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(AdaptError, match=f"{RECIPE}: No space .*; nothing was written"):
        write_texts(workspace, before, after)
    monkeypatch.setattr(os, "replace", real)
    assert texts(workspace) == before
    assert not list(workspace.rglob("*.part"))
    assert write_texts(workspace, before, after) == [MAP, RECIPE]
    assert texts(workspace) == after


@pytest.mark.parametrize("late", [False, True])
def test_an_interruption_leaves_all_as_it_was(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, late: bool
) -> None:
    """A signal comes before or right after a file is put in place, and the disk is full by then."""
    before = texts(workspace)
    after = {name: text + "# more\n" for name, text in before.items()}
    real, calls = os.replace, list[object]()

    def full(*args: object, **kwargs: object) -> object:
        raise OSError(28, "No space left on device")

    def replace(source: str, target: str) -> None:
        calls.append(target)
        if len(calls) != 2 or late:
            real(source, target)
        if len(calls) == 2:
            monkeypatch.setattr("tempfile.mkstemp", full)
            raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(KeyboardInterrupt):
        write_texts(workspace, before, after)
    assert texts(workspace) == before
    assert not list(workspace.rglob("*.part"))


def test_what_somebody_changed_meanwhile_is_not_written_over(workspace: Path) -> None:
    before = texts(workspace)
    (workspace / MAP).write_text(before[MAP] + "# mine\n")
    with pytest.raises(AdaptError, match="changed meanwhile"):
        write_texts(workspace, before, {name: text + "#\n" for name, text in before.items()})
    assert texts(workspace)[RECIPE] == before[RECIPE]


def test_links_and_permissions_stay(workspace: Path) -> None:
    real = workspace.parent / "map.yaml"
    (workspace / MAP).rename(real)
    (workspace / MAP).symlink_to(real)
    real.chmod(0o640)
    before = texts(workspace)
    write_texts(workspace, before, {**before, MAP: before[MAP] + "# more\n"})
    assert (workspace / MAP).is_symlink() and real.stat().st_mode & 0o777 == 0o640
    assert real.read_text().endswith("# more\n")


def test_a_patch_of_a_file_without_a_last_line_break() -> None:
    text = patch({"a.yaml": "x: 1"}, {"a.yaml": "x: 2"})
    assert text.count("\\ No newline at end of file\n") == 2


def test_texts_that_are_not_written_yet_are_what_is_loaded(workspace: Path) -> None:
    before = texts(workspace)
    changed = before[MAP].replace("name: kunlun\nsglang", "name: other\nsglang")
    platform = load_catalog(workspace, {**before, MAP: changed}).platform_map
    assert platform is not None and platform.model.name == "other"
    again = load_catalog(workspace).platform_map
    assert again is not None and again.model.name == "kunlun"

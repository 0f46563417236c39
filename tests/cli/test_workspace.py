"""Which workspace a command works on, that it says so, and that no document is passed over."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from kunlun_adapt.documents import load_catalog
from kunlun_adapt.locate import find_workspace, workspace_files
from tests.cli.conftest import ROOT, Edit, Run

LIST = ("list", "operators", "--format", "json")


@pytest.fixture
def here(edit: Edit, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace that differs from the shipped one, as the current folder."""
    root = edit({"name: silu_and_mul": "name: ours"}, file="operator_recipes/activation.yaml")
    monkeypatch.chdir(root)
    return root


def operators(stdout: str) -> list[str]:
    return [o["name"] for o in json.loads(stdout)["operators"]]


def test_the_current_folder_comes_before_the_shipped_workspace(run: Run, here: Path) -> None:
    result = run(*LIST)
    assert "ours" in operators(result.stdout)
    assert result.stderr == f"workspace: {here}\n"
    assert run(*LIST, "--quiet").stderr == ""


def test_an_option_and_the_environment_come_before_the_current_folder(
    run: Run, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = run(*LIST, "--workspace", ROOT)
    assert "ours" not in operators(result.stdout) and result.stderr == ""
    monkeypatch.setenv("KUNLUN_ADAPT_WORKSPACE", str(ROOT))
    result = run(*LIST)
    assert "ours" not in operators(result.stdout)
    assert result.stderr == f"workspace: {ROOT}\n"


def test_a_folder_without_a_map_is_no_workspace(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run(*LIST)
    assert "ours" not in operators(result.stdout) and result.stderr == f"workspace: {ROOT}\n"


def test_a_broken_map_in_the_current_folder_is_not_passed_over(run: Run, here: Path) -> None:
    (here / "platform_map.yaml").unlink()
    (here / "platform_map.yaml").symlink_to("nowhere")
    result = run("list", "bindings", "--sglang", "0.5.19")
    assert result.exit_code == 2 and f"workspace: {here}" in result.stderr


def test_a_server_does_not_look_at_the_current_folder(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KUNLUN_ADAPT_WORKSPACE", raising=False)
    assert find_workspace(current=True) == here
    assert find_workspace() == ROOT


def faults(root: Path) -> dict[str, str]:
    return {str(f.position): f.message for f in load_catalog(root).findings if f.code == "KA001"}


@pytest.mark.parametrize("folder", ["operator_recipes", "recipes"])
def test_a_folder_of_documents_that_is_none(here: Path, folder: str) -> None:
    if (here / folder).exists():
        (here / folder).rename(here / "aside")
    assert faults(here) == {}, "a folder that is not there holds no documents"
    (here / folder).write_text("name: x\n")
    assert faults(here) == {f"{folder}:1:1": "cannot be read: Not a directory"}
    (here / folder).unlink()
    (here / folder).symlink_to("nowhere")
    assert faults(here) == {f"{folder}:1:1": "cannot be read: No such file or directory"}


def test_whatever_bears_a_document_s_name_is_read(here: Path) -> None:
    folder = here / "operator_recipes"
    (folder / "link.yaml").symlink_to("nowhere")
    (folder / "folder.yaml").mkdir()
    (folder / "folder.yaml" / "inner.yaml").write_text("")
    os.mkfifo(folder / "pipe.yaml")
    assert faults(here) == {
        "operator_recipes/folder.yaml:1:1": "cannot be read: Is a directory",
        "operator_recipes/link.yaml:1:1": "cannot be read: No such file or directory",
        "operator_recipes/pipe.yaml:1:1": "cannot be read: it is not a regular file",
    }


def test_linked_folders_are_read_once(here: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "more.yaml").write_text("")
    (outside / "back").symlink_to(here / "operator_recipes")
    for name in ("one", "two"):
        (here / "operator_recipes" / name).symlink_to(outside)
    found = [name for name, path in workspace_files(here) if path.name == "more.yaml"]
    assert len(found) == 1
    assert len(workspace_files(here)) == len({path.resolve() for _, path in workspace_files(here)})


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_folder_that_cannot_be_listed(here: Path) -> None:
    inner = here / "operator_recipes" / "inner"
    inner.mkdir(mode=0o000)
    assert faults(here) == {"operator_recipes/inner:1:1": "cannot be read: Permission denied"}


def test_a_folder_whose_listing_fails_is_read_and_so_reported(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listing = os.scandir

    def refuse(path: str) -> object:
        if Path(path).name == "operator_recipes":
            raise PermissionError(13, "Permission denied", str(path))
        return listing(path)

    monkeypatch.setattr("os.scandir", refuse)
    names = [name for name, _ in workspace_files(here)]
    assert names[:2] == ["platform_map.yaml", "operator_recipes"]

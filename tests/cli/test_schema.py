"""`kunlun-adapt schema`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kunlun_adapt.documents.schema import json_schema, schema_text
from tests.cli.conftest import Run


@pytest.mark.parametrize("kind", ["PlatformMap", "platform-map", "platform_map"])
def test_it_prints_the_schema(run: Run, kind: str) -> None:
    result = run("schema", kind)
    assert result.exit_code == 0
    assert json.loads(result.stdout) == json_schema("PlatformMap")


def test_it_writes_a_file(run: Run, tmp_path: Path) -> None:
    assert run("schema", "OperatorRecipe", "--out", str(tmp_path)).exit_code == 0
    path = tmp_path / "operator-recipe.schema.json"
    assert path.read_text(encoding="utf-8") == schema_text("OperatorRecipe")
    assert run("schema", "PlatformMap", "--out", str(path), "--quiet").exit_code == 0
    assert path.read_text(encoding="utf-8") == schema_text("PlatformMap")


def test_a_slash_at_the_end_names_a_folder(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "new" / "schemas"
    for _ in range(2):
        assert run("schema", "PlatformMap", "--out", f"{folder}/").exit_code == 0
        assert [path.name for path in folder.iterdir()] == ["platform-map.schema.json"]
    (tmp_path / "file").write_text("")
    result = run("schema", "PlatformMap", "--out", f"{tmp_path / 'file'}/")
    assert result.exit_code == 2 and "error:" in result.stderr


def test_an_unknown_kind_names_those_that_there_are(run: Run) -> None:
    result = run("schema", "Hook")
    assert result.exit_code == 2
    assert "no document is of the kind 'Hook'" in result.stderr
    assert "one of PlatformMap, OperatorRecipe, AdaptationRecipe" in result.stderr


def test_what_cannot_be_written_is_said(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = run("schema", "PlatformMap", "--out", str(tmp_path / "file" / "x.json"))
    assert result.exit_code == 2
    assert "error:" in result.stderr
    result = run("schema", "PlatformMap", "--out", str(tmp_path / "none" / "x.json"))
    assert result.exit_code == 2 and not (tmp_path / "none").exists()

"""The cache of generated text: whom it trusts, what its key covers, many processes at once."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from kunlun_adapt.locate import workspace_files
from kunlun_adapt.runtime import cache, prepare
from tests.runtime.stage import MAP, RECIPE, ROOT, Stage

MADE = cache.Cached({"hooks": "x = 1\n"}, {"sglang/a.py": "hash"})


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(cache.CACHE, str(tmp_path / "cache"))
    return tmp_path / "cache" / "generated"


def test_what_was_saved_is_loaded(folder: Path) -> None:
    cache.save("name", MADE)
    assert cache.load("name") == MADE
    assert (folder / "name.json").stat().st_mode & 0o077 == 0
    assert cache.load("other") is None


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b'{"modules": {"hooks": "x"',
        b"\xff\xfe",
        b"[]",
        b'{"modules": {}, "files": {}}',
        b'{"modules": {"hooks": 1}, "files": {}}',
        b'{"modules": "hooks", "files": {}}',
        b'{"files": {}}',
        b"[" * 100_000,
    ],
)
def test_a_broken_entry_counts_as_none_and_is_made_anew(
    folder: Path, body: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    cache.save("name", MADE)
    (folder / "name.json").write_bytes(body)
    with caplog.at_level(logging.WARNING):
        assert cache.load("name") is None
    assert "ignoring the cached text" in caplog.text
    cache.save("name", MADE)
    assert cache.load("name") == MADE


@pytest.mark.parametrize("place", ["name.json", "."])
def test_what_others_may_write_is_not_trusted(
    folder: Path, place: str, caplog: pytest.LogCaptureFixture
) -> None:
    cache.save("name", MADE)
    (folder / place).chmod(0o777)
    with caplog.at_level(logging.WARNING):
        assert cache.load("name") is None
    assert "others may write it" in caplog.text


def test_what_another_user_owns_is_not_trusted(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.save("name", MADE)
    monkeypatch.setattr(os, "getuid", lambda: folder.stat().st_uid + 1)
    assert cache.load("name") is None


def test_a_folder_that_cannot_be_made_is_no_harm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(cache.CACHE, str(tmp_path / "file"))
    with caplog.at_level(logging.WARNING):
        cache.save("name", MADE)
        assert cache.load("name") is None
    assert "could not be cached" in caplog.text


def test_old_entries_are_dropped(folder: Path) -> None:
    for i in range(cache.KEPT + 3):
        cache.save(f"{i}", MADE)
        os.utime(folder / f"{i}.json", (i, i))
    cache.save("last", MADE)
    kept = {p.stem for p in folder.glob("*")}
    assert len(kept) == cache.KEPT and "last" in kept and "0" not in kept


def test_many_processes_may_save_at_once(folder: Path) -> None:
    code = textwrap.dedent(
        """
        from kunlun_adapt.runtime import cache
        made = cache.Cached({"hooks": "x" * 200_000}, {"f": "h"})
        for _ in range(40):
            cache.save("name", made)
            assert cache.load("name") == made
        """
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    several = [subprocess.Popen([sys.executable, "-c", code], env=environment) for _ in range(3)]
    assert [one.wait(60) for one in several] == [0, 0, 0]
    assert [p.name for p in folder.iterdir()] == ["name.json"]


def test_the_key_tells_names_and_contents_apart() -> None:
    keys = {
        cache.key([("a", b"bc")]),
        cache.key([("ab", b"c")]),
        cache.key([("a", b"b"), ("c", b"")]),
        cache.key([("c", b""), ("a", b"b")]),
    }
    assert len(keys) == 4


@pytest.fixture
def saved(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The keys under which `prepare` looks."""
    names: list[str] = []
    real = cache.load

    def load(name: str) -> cache.Cached | None:
        names.append(name)
        return real(name)

    monkeypatch.setattr(cache, "load", load)
    return names


def test_every_input_is_in_the_key(stage: Stage, saved: list[str]) -> None:
    stage = stage.add("unused.py", "")
    stage.write()
    root = stage.root / "workspace"
    installed = prepare.Installed("1.2.0", stage.tree)

    def look() -> str:
        prepare.prepare(root, installed, "card", prepare.documents_digest(root))
        return saved[-1]

    seen = [look()]
    assert look() == seen[0]
    edits = [root / MAP, root / RECIPE, root / "adapt.lock"]
    for path in edits:
        path.write_bytes(path.read_bytes() + b"\n")
        seen.append(look())
    (root / "operator_recipes" / "moved").mkdir()
    (root / RECIPE).rename(root / "operator_recipes" / "moved" / "activation.yaml")
    seen.append(look())
    templates = root / "templates"
    templates.mkdir()
    for path in (ROOT / "templates").glob("*.j2"):
        (templates / path.name).write_bytes(path.read_bytes())
    assert look() == seen[-1], "the same templates give the same text, wherever they lie"
    (templates / "hooks.py.j2").write_text((templates / "hooks.py.j2").read_text() + "\n")
    seen.append(look())
    assert len(set(seen)) == len(seen)
    assert prepare.documents_digest(root) != prepare.documents_digest(ROOT)
    assert len(list(workspace_files(root))) == 2


def test_the_compiler_itself_is_in_the_key() -> None:
    names = [name for name, _ in prepare._compiler(ROOT)]
    for part in ("documents/loader.py", "plan/plan.py", "source/compile.py", "upstream/lock.py"):
        assert part in names
    assert "templates/operator.py.j2" in names and "locate.py" in names


def test_a_drifted_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "same.py").write_bytes(b"")
    empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    files = {"same.py": empty, "gone.py": empty}
    assert prepare.drifted(prepare.Installed("1", tmp_path), files) == ["gone.py"]
    (tmp_path / "same.py").write_bytes(b"x")
    assert prepare.drifted(prepare.Installed("1", tmp_path), files) == ["same.py", "gone.py"]


def test_a_stored_entry_is_plain_json(folder: Path) -> None:
    cache.save("name", MADE)
    assert json.loads((folder / "name.json").read_text()) == {
        "modules": dict(MADE.modules),
        "files": dict(MADE.files),
    }

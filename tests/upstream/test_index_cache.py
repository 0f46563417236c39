"""The index on disk: made once, for one content, by one process at a time, whole or not at all."""

from __future__ import annotations

import base64
import hashlib
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from kunlun_adapt.upstream import Release, open_index, open_release
from kunlun_adapt.upstream.index import build as building
from kunlun_adapt.upstream.index import release_digest
from kunlun_adapt.upstream.index.build import Built, scan_release
from kunlun_adapt.upstream.index.cache import Stored, stored_index

Files = Mapping[str, str]
MANY = {f"sglang/srt/m{n}.py": f"def f{n}(x):\n    return x + {n}\n" for n in range(220)}


@pytest.fixture
def release(make_tree: Callable[[Files], Path]) -> Release:
    return open_release(str(make_tree(MANY)))


def files(folder: Path) -> list[Path]:
    return sorted((folder / "indexes").glob("*.index"))


def recorded(wheel: Path, lies: str | None = None) -> Path:
    """Add the RECORD that a built wheel has; of one file it may lie."""
    with zipfile.ZipFile(wheel, "a") as archive:
        rows = []
        for name in archive.namelist():
            data = b"other" if name == lies else archive.read(name)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            rows.append(f"{name},sha256={digest},{len(data)}")
        rows += ["strange", "worse,sha256=?,1", ""]
        archive.writestr("sglang-0.5.19.dist-info/RECORD", "\n".join(rows))
    return wheel


def test_what_is_held_is_read_and_not_made_again(release: Release, tmp_path: Path) -> None:
    first = open_index(release, cache_dir=tmp_path)
    (path,) = files(tmp_path)
    before = path.stat().st_mtime_ns
    second = open_index(release, cache_dir=tmp_path)
    assert path.stat().st_mtime_ns == before
    assert second.modules == first.modules
    assert second.definitions("f7") == first.definitions("f7") != ()
    assert path.stat().st_mode & 0o077 == 0
    assert path.parent.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    "spoil",
    [
        lambda data: b"",
        lambda data: data[:5],
        lambda data: data[: len(data) // 2],
        lambda data: data[:-1],
        lambda data: data[:100] + bytes([data[100] ^ 1]) + data[101:],
        lambda data: data[:-30] + bytes([data[-30] ^ 1]) + data[-29:],
        lambda data: data + b"more",
        lambda data: b"KAINDEX9" + data[8:],
        lambda data: os.urandom(4096),
    ],
)
def test_a_damaged_file_is_made_again(
    release: Release, tmp_path: Path, spoil: Callable[[bytes], bytes]
) -> None:
    whole = open_index(release, cache_dir=tmp_path)
    (path,) = files(tmp_path)
    data = path.read_bytes()
    path.write_bytes(spoil(data))
    again = open_index(release, cache_dir=tmp_path)
    assert again.definitions("f7") == whole.definitions("f7")
    assert path.read_bytes() == data


def test_another_content_is_another_index(
    release: Release, make_tree: Callable[[Files], Path], tmp_path: Path
) -> None:
    open_index(release, cache_dir=tmp_path)
    changed = open_release(str(make_tree({**MANY, "sglang/srt/m7.py": "def g(x):\n    pass\n"})))
    index = open_index(changed, cache_dir=tmp_path)
    assert index.definitions("g") and not index.definitions("f7")
    assert len(files(tmp_path)) == 2


def test_a_wheel_and_what_it_unpacks_to_have_one_digest(
    make_wheel: Callable[..., Path], make_tree: Callable[[Files], Path], tmp_path: Path
) -> None:
    wheel = open_release(str(recorded(make_wheel(MANY))))
    tree = open_release(str(make_tree({**MANY, "sglang/srt/data.txt": "not a module"})))
    assert release_digest(wheel) == release_digest(tree)
    unrecorded = open_release(str(make_wheel(MANY, folder=make_folder(tmp_path))))
    assert release_digest(unrecorded) == release_digest(tree)


def make_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "other"
    folder.mkdir()
    return folder


def test_a_wheel_whose_record_lies_is_not_kept(
    make_wheel: Callable[..., Path], tmp_path: Path
) -> None:
    wheel = open_release(str(recorded(make_wheel(MANY), lies="sglang/srt/m7.py")))
    index = open_index(wheel, cache_dir=tmp_path)
    assert index.definitions("f7")
    assert not files(tmp_path)


def test_a_folder_that_cannot_be_written_costs_the_cache_only(
    release: Release, tmp_path: Path
) -> None:
    (tmp_path / "indexes").write_text("a file where the folder should be", encoding="utf-8")
    assert open_index(release, cache_dir=tmp_path).definitions("f7")


def test_a_small_tree_is_not_kept(make_tree: Callable[[Files], Path], tmp_path: Path) -> None:
    small = open_release(str(make_tree({"sglang/srt/a.py": "def f():\n    pass\n"})))
    assert open_index(small, cache_dir=tmp_path).definitions("f")
    assert not files(tmp_path)


PROGRAM = """
import sys
from pathlib import Path
from typing import Any
from kunlun_adapt.upstream import open_release
import kunlun_adapt.upstream.index as package

made = []
whole = package.scan_release
def counted(*args):
    made.append(1)
    return whole(*args)
package.scan_release = counted
index = package.open_index(open_release(sys.argv[1]), cache_dir=Path(sys.argv[2]))
print(len(made), len(index.definitions("f7")))
"""


def test_of_many_processes_one_makes_it(release: Release, tmp_path: Path) -> None:
    command = [sys.executable, "-c", PROGRAM, release.origin, str(tmp_path)]
    running = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(5)
    ]
    said = [process.communicate(timeout=120) for process in running]
    assert [process.returncode for process in running] == [0] * 5, said
    answers = sorted(out.split() for out, _ in said)
    assert answers == [["0", "1"]] * 4 + [["1", "1"]]
    assert len(files(tmp_path)) == 1
    assert not list((tmp_path / "indexes").glob(".index-*"))


def test_two_processes_find_what_one_does(
    release: Release, monkeypatch: pytest.MonkeyPatch
) -> None:
    two = scan_release(release)
    monkeypatch.setattr(building, "_PROCESSES", 1)
    one = scan_release(release)
    assert (one.modules, one.rows, one.tables) == (two.modules, two.rows, two.tables)
    assert one.hashes == two.hashes


@pytest.mark.parametrize("program", ["import sys; sys.exit(3)", "print('noise')"])
def test_a_second_process_that_fails_is_done_without(
    release: Release, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    class Failing(subprocess.Popen[bytes]):
        def __init__(self, command: list[str], **how: Any) -> None:
            super().__init__([command[0], "-c", program], **how)

    whole = scan_release(release)
    monkeypatch.setattr(subprocess, "Popen", Failing)
    assert scan_release(release).rows == whole.rows


def test_progress_is_told_to_the_end(release: Release) -> None:
    said: list[float | None] = []
    scan_release(release, lambda message, fraction: said.append(fraction))
    assert said[-1] == 1.0
    told = [fraction for fraction in said if fraction is not None]
    assert told == sorted(told)


def test_what_older_code_left_is_dropped(release: Release, tmp_path: Path) -> None:
    open_index(release, cache_dir=tmp_path)
    (path,) = files(tmp_path)
    old = path.with_name(path.name.rpartition("-")[0] + "-000000000000.index")
    other = path.with_name("0" * 32 + "-py311-000000000000.index")
    for file in (old, other):
        file.write_bytes(b"old")
    path.unlink()
    open_index(release, cache_dir=tmp_path)
    assert files(tmp_path) == sorted([path, other])


def test_the_digest_in_the_file_must_be_the_one_asked_for(release: Release, tmp_path: Path) -> None:
    def make() -> Built:
        return scan_release(release)

    digest = release_digest(release)
    stored_index(digest, make, tmp_path)
    (path,) = files(tmp_path)
    strange = "f" * 64
    path.rename(path.with_name(path.name.replace(digest[:32], strange[:32])))
    again: Stored = stored_index(strange, make, tmp_path)
    assert again.digest == strange

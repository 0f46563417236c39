from __future__ import annotations

import hashlib
import importlib.util
import struct
import sys
import zipfile
from collections.abc import Callable, Mapping
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kunlun_adapt.upstream import Release, ReleaseError, open_release
from kunlun_adapt.upstream.release import module_of
from kunlun_adapt.upstream.stores import MAX_FILE_BYTES, unsafe

Tree = Callable[[Mapping[str, str]], Path]
Wheel = Callable[..., Path]

FILES = {"sglang/srt/m.py": "x = 1\n", "sglang/srt/n/__init__.py": "", "sglang/srt/d.txt": "t"}


def _check(release: Release) -> None:
    assert release.version == "0.5.19"
    assert release.read("sglang/srt/m.py") == b"x = 1\n"
    assert release.sha256("sglang/srt/m.py") == hashlib.sha256(b"x = 1\n").hexdigest()
    assert release.read("sglang/srt/none.py") is None
    assert release.read("sglang/srt") is None
    assert release.exists("sglang/srt/m.py") and not release.exists("sglang/srt")
    assert release.is_dir("sglang/srt") and not release.is_dir("sglang/srt/m.py")
    assert list(release.modules()) == [
        "sglang",
        "sglang.srt.m",
        "sglang.srt.n",
        "sglang.version",
    ]
    assert release.module_file("sglang.srt.n") == "sglang/srt/n/__init__.py"
    assert release.module_file("sglang.srt") is None
    with pytest.raises(ReleaseError, match="has no file"):
        release.sha256("sglang/none.py")


@pytest.mark.parametrize("spec", ["", "  "])
def test_an_empty_name_is_not_the_current_folder(spec: str) -> None:
    with pytest.raises(ReleaseError, match="no release is named"):
        open_release(spec)


def test_a_wheel_is_read_in_place(make_wheel: Wheel, tmp_path: Path) -> None:
    wheel = make_wheel(FILES)
    before = sorted(tmp_path.iterdir())
    release = open_release(str(wheel))
    _check(release)
    assert str(wheel) in release.origin
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("below", ["", "sglang"])
def test_a_tree_is_found_from_its_parent_and_from_itself(make_tree: Tree, below: str) -> None:
    _check(open_release(str(make_tree(FILES) / below)))


def test_a_checkout_is_found(make_tree: Tree, tmp_path: Path) -> None:
    make_tree(FILES).rename(tmp_path / "python")
    _check(open_release(str(tmp_path)))


def test_dist_info_states_the_version_before_the_package_does(make_tree: Tree) -> None:
    root = make_tree(FILES)
    (root / "sglang-0.5.20.dist-info").mkdir()
    (root / "sglang-0.5.20.dist-info" / "METADATA").write_text("Name: sglang\nVersion: 0.5.20\n")
    assert open_release(str(root)).version == "0.5.20"


def test_a_tree_without_a_version_asks_for_one(make_tree: Tree) -> None:
    root = make_tree({**FILES, "sglang/version.py": "__version__ = compute()\n"})
    with pytest.raises(ReleaseError) as caught:
        open_release(str(root))
    assert f"{root}@" in caught.value.hint
    _check(open_release(f"{root}@0.5.19"))
    with pytest.raises(ReleaseError, match="not a version"):
        open_release(f"{root}@latest")


def test_generated_version_files_are_read(make_tree: Tree) -> None:
    text = "try:\n    x = 1\nexcept ImportError:\n    x = 2\n__version__ = version = '0.5.18'\n"
    assert open_release(str(make_tree({"sglang/_version.py": text}))).version == "0.5.18"


def test_installed_is_found_without_importing(
    make_tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = make_tree({**FILES, "sglang/__init__.py": "raise RuntimeError('imported')\n"})
    spec = ModuleSpec("sglang", None, is_package=True)
    spec.submodule_search_locations = [str(root / "sglang")]
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: spec)
    monkeypatch.setattr("importlib.metadata.version", lambda name: "0.5.19")
    release = open_release("installed")
    _check(release)
    assert release.origin.startswith("installed in")
    assert "sglang" not in sys.modules


def test_not_installed_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ReleaseError, match="not installed"):
        open_release("installed")


@pytest.mark.parametrize("spec", ["", "nonsense", "0.5.x", "./gone.whl", "git:/x@y"])
def test_a_spec_that_names_nothing_is_refused(spec: str) -> None:
    with pytest.raises(ReleaseError) as caught:
        open_release(spec)
    assert caught.value.hint


def test_a_folder_or_file_that_is_not_sglang_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ReleaseError, match="holds no SGLang"):
        open_release(str(tmp_path))
    (tmp_path / "x.txt").write_text("x")
    with pytest.raises(ReleaseError, match="neither a wheel nor a directory"):
        open_release(str(tmp_path / "x.txt"))


@pytest.mark.parametrize("cut", [0, 1, 100, -30])
def test_a_truncated_wheel_is_refused(make_wheel: Wheel, cut: int) -> None:
    wheel = make_wheel(FILES)
    wheel.write_bytes(wheel.read_bytes()[:cut])
    with pytest.raises(ReleaseError, match="cannot be read as a wheel"):
        open_release(str(wheel))


def test_a_wheel_with_a_damaged_member_is_refused_when_it_is_read(make_wheel: Wheel) -> None:
    wheel = make_wheel({"sglang/m.py": "x = 1\n" * 50})
    data = bytearray(wheel.read_bytes())
    start = data.index(b"sglang/m.py") + len("sglang/m.py")
    data[start : start + 4] = b"\xff\xff\xff\xff"
    wheel.write_bytes(bytes(data))
    with pytest.raises(ReleaseError, match="cannot be read"):
        open_release(str(wheel)).read("sglang/m.py")


def test_another_packages_wheel_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("other/__init__.py", "")
        archive.writestr("other-1.0.dist-info/METADATA", "Version: 1.0\n")
    with pytest.raises(ReleaseError, match="not a wheel of SGLang"):
        open_release(str(path))


@pytest.mark.parametrize(
    "name", ["../evil.py", "/etc/evil", "sglang/../../evil.py", "C:/evil.py", "sglang\\..\\evil"]
)
def test_names_that_leave_the_archive_are_refused(make_wheel: Wheel, name: str) -> None:
    wheel = make_wheel({"sglang/m.py": "", name: "x"})
    with pytest.raises(ReleaseError, match="leaves the archive"):
        open_release(str(wheel))


def test_a_member_that_is_there_twice_is_refused(make_wheel: Wheel) -> None:
    wheel = make_wheel(FILES)
    with zipfile.ZipFile(wheel, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("sglang/srt/m.py", "y = 2\n")
    with pytest.raises(ReleaseError, match="twice"):
        open_release(str(wheel))


def test_a_zip_bomb_is_refused(make_wheel: Wheel) -> None:
    wheel = make_wheel({"sglang/bomb.py": "0" * 20_000_000})
    with pytest.raises(ReleaseError, match="which no wheel does"):
        open_release(str(wheel))


def test_a_member_that_lies_about_its_size_is_not_read_whole(make_wheel: Wheel) -> None:
    wheel = make_wheel({"sglang/big.py": "0" * (MAX_FILE_BYTES + 10)})
    data = wheel.read_bytes()
    data = data.replace(struct.pack("<I", MAX_FILE_BYTES + 10), struct.pack("<I", 1000))
    wheel.write_bytes(data)
    with pytest.raises(ReleaseError):
        open_release(str(wheel)).read("sglang/big.py")


def test_a_tree_is_not_read_outside_of_itself(make_tree: Tree) -> None:
    root = make_tree(FILES)
    (root.parent / "secret.py").write_text("x")
    release = open_release(str(root))
    for path in ("../secret.py", str(root.parent / "secret.py"), "sglang/../../secret.py"):
        assert release.read(path) is None
        assert not release.exists(path)


@given(st.lists(st.sampled_from(["a", "..", ".", "", "b.py"]), min_size=1, max_size=5))
def test_unsafe_sees_every_climb(parts: list[str]) -> None:
    path = "/".join(parts)
    climbs = ".." in parts
    assert unsafe(path) == (climbs or path == "" or path.startswith("/"))


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("sglang/a/b.py", "sglang.a.b"),
        ("sglang/a/__init__.py", "sglang.a"),
        ("sglang/a/b.txt", None),
        ("sglang/a-b/c.py", None),
    ],
)
def test_module_of(path: str, name: str | None) -> None:
    assert module_of(path) == name


@pytest.mark.parametrize(
    ("offset", "damage"), [(6, b"\x8e\x00"), (8, b"\x00\x08")], ids=["newer zip", "no encoding"]
)
def test_a_wheel_with_a_damaged_directory_is_refused(
    make_wheel: Wheel, offset: int, damage: bytes
) -> None:
    path = make_wheel(FILES)
    data = bytearray(path.read_bytes())
    entry = data.rindex(b"PK\x01\x02")
    data[entry + offset : entry + offset + 2] = damage
    data[entry + 46] = 0xFF
    path.write_bytes(data)
    with pytest.raises(ReleaseError, match="cannot be read as a wheel"):
        open_release(str(path))

"""A wheel that is not what the index says it is never gets into the cache; with the real pip."""

from __future__ import annotations

import hashlib
import os
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from kunlun_adapt.upstream import ReleaseError, open_release

Wheel = Callable[..., Path]


@pytest.fixture
def wheel(make_wheel: Wheel, tmp_path: Path) -> Path:
    """A wheel that pip takes for one."""
    made = make_wheel({}, folder=tmp_path)
    with zipfile.ZipFile(made, "a") as archive:
        text = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        archive.writestr("sglang-0.5.19.dist-info/WHEEL", text)
        archive.writestr("sglang-0.5.19.dist-info/RECORD", "")
    return made


def index_of(wheel: Path, root: Path, sha256: str) -> str:
    """Write a package index of one wheel and return its address."""
    folder = root / "simple/sglang"
    folder.mkdir(parents=True)
    link = f'<a href="{wheel.as_uri()}#sha256={sha256}">{wheel.name}</a>'
    (folder / "index.html").write_text(f"<!DOCTYPE html><html><body>{link}</body></html>")
    return (root / "simple").as_uri()


def fetch(wheel: Path, tmp_path: Path, sha256: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", index_of(wheel, tmp_path / "index", sha256))
    cache = tmp_path / "cache"
    try:
        open_release("0.5.19", cache_dir=cache)
    finally:
        left = sorted(p.name for p in (cache / "releases").iterdir() if not p.name.startswith("."))
        (tmp_path / "left").write_text(" ".join(left))
    return cache


def test_the_wheel_that_the_index_means(
    wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    cache = fetch(wheel, tmp_path, digest, monkeypatch)
    assert (cache / "releases" / wheel.name).read_bytes() == wheel.read_bytes()


def test_another_wheel_is_refused(
    wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ReleaseError, match=r"(?i)hash") as caught:
        fetch(wheel, tmp_path, "0" * 64, monkeypatch)
    assert caught.value.hint
    assert (tmp_path / "left").read_text() == ""

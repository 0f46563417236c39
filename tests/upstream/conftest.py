"""Small releases made up on the spot."""

from __future__ import annotations

import textwrap
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from kunlun_adapt.upstream import Resolver, open_release

Files = Mapping[str, str]


def _with_basics(files: Files) -> dict[str, str]:
    basics = {"sglang/__init__.py": "", "sglang/version.py": '__version__ = "0.5.19"\n'}
    return {**basics, **{path: textwrap.dedent(text) for path, text in files.items()}}


@pytest.fixture
def make_tree(tmp_path: Path) -> Callable[[Files], Path]:
    """Write files below a folder and return the folder."""

    def make(files: Files) -> Path:
        root = tmp_path / "tree"
        for path, text in _with_basics(files).items():
            target = root / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
        return root

    return make


@pytest.fixture
def make_wheel(tmp_path: Path) -> Callable[..., Path]:
    """Write files into a wheel and return its path."""

    def make(files: Files, version: str = "0.5.19", folder: Path | None = None) -> Path:
        path = (folder or tmp_path) / f"sglang-{version}-py3-none-any.whl"
        metadata = f"Metadata-Version: 2.1\nName: sglang\nVersion: {version}\n\nVersion: 9\n"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, text in _with_basics(files).items():
                archive.writestr(name, text)
            archive.writestr(f"sglang-{version}.dist-info/METADATA", metadata)
        return path

    return make


@pytest.fixture
def resolver(make_tree: Callable[[Files], Path]) -> Callable[[Files], Resolver]:
    """A resolver over a release that consists of these files."""

    def make(files: Files) -> Resolver:
        return Resolver(open_release(str(make_tree(files))))

    return make

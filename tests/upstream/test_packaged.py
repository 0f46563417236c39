"""A checkout is read as the wheel that is made of it: without the packages that it leaves out."""

from __future__ import annotations

from pathlib import Path

import pytest

from kunlun_adapt.upstream import open_release
from kunlun_adapt.upstream.packaged import left_out
from tests.upstream.test_git_store import git

PROJECT = """
[tool.setuptools.packages.find]
exclude = ["tests*", "srt*", "sglang.kernels.aot*"]
"""
FILES = {
    "python/pyproject.toml": PROJECT,
    "python/sglang/__init__.py": "",
    "python/sglang/version.py": '__version__ = "0.5.19"\n',
    "python/sglang/srt/tests.py": "",
    "python/sglang/kernels/__init__.py": "",
    "python/sglang/kernels/aot/setup.py": "",
    "python/sglang/kernels/aot/build/made.py": "",
    "python/sglang/kernels/ops.py": "",
}
KEPT = [
    *("sglang/__init__.py", "sglang/kernels/__init__.py", "sglang/kernels/ops.py"),
    *("sglang/srt/tests.py", "sglang/version.py"),
]


@pytest.mark.parametrize("form", ["{root}", "{root}/python", "git:{root}@HEAD@0.5.19"])
def test_what_no_wheel_has_is_no_part_of_a_release(tmp_path: Path, form: str) -> None:
    root = tmp_path / "sources"
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    git(root, "init", "-q")
    git(root, "add", ".")
    git(root, "commit", "-q", "-m", "all")
    release = open_release(form.format(root=root))
    assert sorted(release.store.files()) == KEPT
    assert not release.exists("sglang/kernels/aot/setup.py")
    assert release.read("sglang/kernels/aot/build/made.py") is None
    assert not release.is_dir("sglang/kernels/aot")
    assert release.is_dir("sglang/kernels") and release.exists("sglang/srt/tests.py")


@pytest.mark.parametrize(
    "text",
    [
        None,
        b"",
        b"\xff\xfe",
        b"not = [toml",
        pytest.param(b"deep = " + b"[" * 5000 + b"]" * 5000, id="deep"),
        b"tool = 1",
        b"[tool.setuptools]\npackages = ['sglang']",
        b"[tool.setuptools.packages.find]\nexclude = 'sglang.*'",
        b"[tool.setuptools.packages.find]\nexclude = [1, {}]",
    ],
)
def test_without_a_list_nothing_is_left_out(text: bytes | None) -> None:
    assert not left_out(text)("sglang/kernels/aot/setup.py")

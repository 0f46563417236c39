"""Releases in a git repository: read from the object store, whatever is checked out."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from kunlun_adapt.upstream import ReleaseError, Resolver, Symbol, open_release

Tree = Callable[[Mapping[str, str]], Path]
MODULE = "python/sglang/srt/affinity.py"


def git(repository: Path, *arguments: str) -> str:
    environment = {
        **os.environ,
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_SYSTEM": os.devnull,
        "GIT_AUTHOR_NAME": "A",
        "GIT_AUTHOR_EMAIL": "a@example.org",
        "GIT_COMMITTER_NAME": "A",
        "GIT_COMMITTER_EMAIL": "a@example.org",
    }
    done = subprocess.run(
        ["git", "-C", str(repository), *arguments],
        check=True,
        capture_output=True,
        text=True,
        env=environment,
    )
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Two commits of a checkout, the first one tagged, and then a dirty work tree."""
    root = tmp_path / "check out"
    file = root / MODULE
    file.parent.mkdir(parents=True)
    (root / "python/sglang/__init__.py").write_text("", encoding="utf-8")
    git(root, "init", "-q")
    for text, tag in (("def pin(gpu_id, nodes): ...\n", "v0.5.20"), ("def pin(gpu_id): ...\n", "")):
        file.write_text(text, encoding="utf-8")
        git(root, "add", ".")
        git(root, "commit", "-q", "-m", "change")
        if tag:
            git(root, "tag", tag)
    file.write_text("def pin(dirty): ...\n", encoding="utf-8")
    return root


def signature(spec: str) -> tuple[str, str]:
    release = open_release(spec)
    found = Resolver(release).resolve("sglang.srt.affinity.pin")
    assert isinstance(found, Symbol) and found.signature is not None
    return release.version, found.signature.text()


def test_a_tag_is_read_whatever_is_checked_out(repository: Path) -> None:
    assert signature(f"git:{repository}@v0.5.20") == ("0.5.20", "(gpu_id, nodes)")


def test_a_commit_after_a_tag_is_a_local_version_of_it(repository: Path) -> None:
    version, text = signature(f"git:{repository}@HEAD")
    head = git(repository, "rev-parse", "--short=7", "HEAD")
    assert version.startswith(f"0.5.20+1.g{head}")
    assert text == "(gpu_id)"


def test_the_version_may_be_stated(repository: Path) -> None:
    git(repository, "tag", "-d", "v0.5.20")
    assert signature(f"git:{repository}@HEAD~1@0.5.21") == ("0.5.21", "(gpu_id, nodes)")
    with pytest.raises(ReleaseError, match="does not state its version") as caught:
        open_release(f"git:{repository}@HEAD")
    assert f"git:{repository}@HEAD@" in str(caught.value.hint)


def test_the_repository_of_a_hook_of_gits_is_not_read_instead(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "-q")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other))
    assert signature(f"git:{repository}@v0.5.20") == ("0.5.20", "(gpu_id, nodes)")


def test_what_a_partial_clone_lacks_is_said_with_the_remedy(
    repository: Path, tmp_path: Path
) -> None:
    git(repository, "config", "uploadpack.allowFilter", "true")
    clone = ("clone", "-q", "--no-checkout", "--filter=blob:none")
    git(tmp_path, *clone, repository.as_uri(), "partial")
    release = open_release(f"git:{tmp_path / 'partial'}@v0.5.20")
    with pytest.raises(ReleaseError, match="git cannot read") as caught:
        release.read("sglang/srt/affinity.py")
    assert "git fetch --refetch --no-filter" in caught.value.hint
    git(tmp_path / "partial", "fetch", "-q", "--refetch", "--no-filter")
    assert signature(f"git:{tmp_path / 'partial'}@v0.5.20") == ("0.5.20", "(gpu_id, nodes)")


def test_a_bare_repository_will_do(repository: Path, tmp_path: Path) -> None:
    bare = tmp_path / "bare.git"
    git(repository, "clone", "-q", "--bare", str(repository), str(bare))
    release = open_release(f"git:{bare}@v0.5.20")
    assert release.is_dir("sglang/srt") and not release.exists("sglang/missing.py")
    assert list(release.modules()) == ["sglang", "sglang.srt.affinity"]
    assert release.read("sglang/missing.py") is None


def test_the_package_at_the_top(make_tree: Tree) -> None:
    root = make_tree({"sglang/a.py": "X = 1\n"})
    git(root, "init", "-q")
    git(root, "add", ".")
    git(root, "commit", "-q", "-m", "all")
    assert open_release(f"git:{root}@HEAD").read("sglang/a.py") == b"X = 1\n"


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("git:", "does not name a repository and a revision"),
        ("git:{root}", "does not name a repository and a revision"),
        ("git:{root}@", "does not name a repository and a revision"),
        ("git:{root}@v9.9.9", "has no revision 'v9.9.9'"),
        ("git:{root}@--output=x", "has no revision"),
        ("git:{root}@HEAD:python", "has no revision"),
        ("git:{root}/missing@HEAD", "is not a folder"),
        ("git:{root}/python@v0.5.20\0", "names no release"),
    ],
)
def test_what_names_nothing_is_refused(repository: Path, spec: str, message: str) -> None:
    with pytest.raises(ReleaseError, match=message) as caught:
        open_release(spec.format(root=repository))
    assert caught.value.hint


def test_a_folder_that_is_no_repository_keeps_gits_reason(tmp_path: Path) -> None:
    with pytest.raises(ReleaseError, match="not a git repository"):
        open_release(f"git:{tmp_path}@HEAD")


def test_a_repository_of_something_else_is_refused(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    (tmp_path / "a.py").write_text("", encoding="utf-8")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "all")
    with pytest.raises(ReleaseError, match="holds no SGLang"):
        open_release(f"git:{tmp_path}@HEAD")


def test_a_lost_object_is_said(repository: Path) -> None:
    blob = git(repository, "rev-parse", f"HEAD:{MODULE}")
    (repository / ".git/objects" / blob[:2] / blob[2:]).unlink()
    release = open_release(f"git:{repository}@HEAD")
    with pytest.raises(ReleaseError, match=r"git cannot read sglang/srt/affinity\.py"):
        release.read("sglang/srt/affinity.py")


def test_no_git_says_so(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ReleaseError, match="git cannot be run"):
        open_release(f"git:{repository}@HEAD")

"""The version of a commit, in histories as upstream's: each release on a branch of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from kunlun_adapt.upstream import git_version
from kunlun_adapt.upstream.git_version import version_at
from tests.upstream.test_git_store import git


class Clone:
    """A repository whose commits hold nothing: only their order matters."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.made = 0
        git(path, "init", "-q", "-b", "main")
        self.commit()

    def commit(self, count: int = 1) -> str:
        for _ in range(count):
            self.made += 1  # else two commits of the same second are the same
            git(self.path, "commit", "-q", "--allow-empty", "-m", f"change {self.made}")
        return git(self.path, "rev-parse", "HEAD")

    def on(self, branch: str, start: str | None = None) -> None:
        new = ("-b", branch, start) if start else (branch,)
        git(self.path, "checkout", "-q", *new)

    def release(self, *versions: str) -> None:
        """Cut a release from the main line, with two commits of its own before each tag."""
        self.on(f"release-{versions[0]}", "main")
        for version in versions:
            self.commit(2)
            git(self.path, "tag", "-a", "-m", "release", f"v{version}")
        self.on("main")

    def at(self, revision: str) -> str | None:
        version = version_at(self.path, git(self.path, "rev-parse", f"{revision}^0"))
        return version and version.partition(".g")[0]


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    made = Clone(tmp_path)
    made.commit()
    made.release("0.5.17")
    made.commit(3)
    made.release("0.5.18", "0.5.18.post1")
    made.commit(4)
    return made


@pytest.mark.parametrize(
    ("revision", "version"),
    [
        ("v0.5.17", "0.5.17"),
        ("v0.5.18", "0.5.18"),
        ("v0.5.18.post1", "0.5.18.post1"),
        # The main line, on which no tag is.
        ("main", "0.5.18.post1+4"),
        ("main~3", "0.5.18.post1+1"),
        ("main~4", "0.5.17+3"),
        ("main~6", "0.5.17+1"),
        # The branches of the releases.
        ("v0.5.18~1", "0.5.17+4"),
        ("v0.5.18.post1~1", "0.5.18+1"),
        # Before the first release that is tagged.
        ("main~7", None),
        ("v0.5.17~1", None),
    ],
)
def test_a_commit_of_the_main_line(clone: Clone, revision: str, version: str | None) -> None:
    assert clone.at(revision) == version


@pytest.mark.parametrize(
    ("start", "version"),
    [("main~5", "0.5.17+3"), ("v0.5.17", "0.5.17+1"), ("main~7", "0.5.17+1"), ("main~8", None)],
)
def test_a_branch_that_went_its_own_way_before_a_release(
    clone: Clone, start: str, version: str | None
) -> None:
    """It lacks what the release has; git alone would name the release to it."""
    clone.on("feature", start)
    clone.commit()
    assert clone.at("feature") == version


def test_a_fork_of_a_release_and_its_main_line(clone: Clone) -> None:
    """That the fork rests on a release says nothing of where the release left."""
    clone.on("fork", "v0.5.17")
    clone.commit()
    git(clone.path, "merge", "-q", "--no-ff", "-m", "main", "main~5")
    assert clone.at("fork") == "0.5.17+4"
    assert clone.at("main") == "0.5.18.post1+4"
    git(clone.path, "merge", "-q", "--no-ff", "-m", "main", "main")
    assert clone.at("fork").startswith("0.5.18.post1+")


def test_the_hash_is_part_of_it(clone: Clone) -> None:
    head = git(clone.path, "rev-parse", "HEAD")
    assert version_at(clone.path, head) == f"0.5.18.post1+4.g{head[:9]}"


def test_tags_that_are_no_versions_and_of_strangers(clone: Clone) -> None:
    git(clone.path, "tag", "v9-of-ours")
    git(clone.path, "tag", "v9.9.0", "main^{tree}")
    git(clone.path, "tag", "gateway-v9.9", "main")
    git(clone.path, "checkout", "-q", "--orphan", "stranger")
    git(clone.path, "commit", "-q", "--allow-empty", "-m", "another root")
    git(clone.path, "tag", "v9.8.0")
    assert clone.at("main") == "0.5.18.post1+4"


def test_the_newest_of_two_tags_on_a_commit(clone: Clone) -> None:
    git(clone.path, "tag", "v0.5.19rc1", "main")
    git(clone.path, "tag", "v0.5.19", "main")
    assert clone.at("main") == "0.5.19"
    clone.commit()
    assert clone.at("main") == "0.5.19+1"


def test_a_clone_whose_main_line_is_a_remotes(clone: Clone, tmp_path: Path) -> None:
    clone.on("feature", "main~5")
    clone.commit()
    other = tmp_path / "other"
    git(tmp_path, "clone", "-q", "--branch", "feature", str(tmp_path), str(other))
    head = git(other, "rev-parse", "HEAD")
    assert version_at(other, head) == f"0.5.17+3.g{head[:9]}"


def test_a_main_line_that_ends_before_the_release_tells_nothing(clone: Clone) -> None:
    """A copy of upstream's main line that nobody has brought up to date."""
    clone.on("feature", "main")
    clone.commit()
    git(clone.path, "branch", "-f", "main", "main~6")
    assert clone.at("feature") == "0.5.18.post1+5"


def test_a_branch_that_lacks_much_of_a_release_came_before_it(
    clone: Clone, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a main line to tell where the release left, what a branch lacks of it does."""
    clone.on("feature", "main~7")
    clone.commit()
    git(clone.path, "branch", "-D", "main")
    git(clone.path, "tag", "-d", "v0.5.18")
    assert clone.at("feature") == "0.5.18.post1+1"  # seven commits less: not much
    monkeypatch.setattr(git_version, "MOST_OWN", 6)
    assert clone.at("feature") == "0.5.17+1"


def test_too_far_from_a_release_its_tags_are_missing(
    clone: Clone, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(git_version, "FARTHEST", 3)
    assert clone.at("main~1") == "0.5.18.post1+3"
    assert clone.at("main") is None


@pytest.mark.parametrize("name", ["v1.0", "v1.0.0.1", "v1.0.0-2", "v1.0.0.dev3", "v1.0.0+ours"])
def test_what_upstream_would_not_call_a_release_is_none(clone: Clone, name: str) -> None:
    git(clone.path, "tag", name, "main~1")
    assert clone.at("main") == "0.5.18.post1+4"

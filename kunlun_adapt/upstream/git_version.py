"""The version that the code of a commit has, from the tags of its repository.

Upstream cuts each release on a branch of its own. Its main line has no recent tag below it,
and `git describe` on its main line answers with a release that is many months old.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from packaging.version import Version

from kunlun_adapt.upstream.git_history import common_ancestor
from kunlun_adapt.upstream.git_run import run_git

_SHORT = 9
"""Digits of a commit's hash in a version."""

MOST_OWN = 100
"""Commits that a branch of a release has for itself; none from 0.5.7 to 0.5.18 had more than 31."""

FARTHEST = 2000
"""Commits from a release to the next; from 0.5.6 to 0.5.18 there were at most 1,430."""

_UPSTREAMS = re.compile(r"v\d+\.\d+\.\d+(rc\d+|\.post\d+)?")
"""How upstream names its releases."""

AFTER_A_RELEASE = r"\d+\.g[0-9a-f]+"
"""The local part of a version of a commit that has no tag: how many commits on, and which it is."""

_LINES = tuple(
    f"refs/{place}/{name}" for place in ("heads", "remotes/*") for name in ("main", "master")
)
"""Where a clone has its main line; without any it is taken to be what is checked out."""


@dataclass(frozen=True, slots=True)
class _Tag:
    version: Version
    commit: str


def version_at(repository: Path, commit: str) -> str | None:
    """The version of a full hash's code, or None where no tag tells.

    A tagged commit has the tag's version. Any other has that of the newest release that does not
    come after it: whose branch left the main line at or before the place from which the commit
    went on. `0.5.19+30.g1f2e3d4a5` is 30 commits on from there. Where the nearest release is too
    far, its tags are missing here. Raises ReleaseError.
    """
    tags = list(_tags(repository))
    for tag in tags:
        if tag.commit == commit:
            return str(tag.version)
    for index, tag in enumerate(tags):
        base = common_ancestor(repository, tag.commit, commit)
        if base in (None, commit) or _count(repository, tag.commit, commit) > MOST_OWN:
            continue  # a stranger's tag, or one that comes after the commit
        if base != tag.commit:
            left = _left(repository, tag, [newer.commit for newer in reversed(tags[:index])])
            if left and left != base and common_ancestor(repository, left, base) == base:
                continue  # the commit went another way before the release did
        on = _count(repository, commit, tag.commit)
        return f"{tag.version.public}+{on}.g{commit[:_SHORT]}" if on <= FARTHEST else None
    return None


def _left(repository: Path, tag: _Tag, newer: list[str]) -> str | None:
    """The commit at which a release left the main line, or None.

    The next release that does not rest on it tells; for the newest one, the main line of the clone.
    What rests on the release itself, such as a fork of it, tells nothing, nor does a line that
    ends before it.
    """
    for line in newer:
        base = common_ancestor(repository, tag.commit, line)
        if base not in (None, tag.commit, line):
            return base
    left: str | None = None
    for line in _heads(repository):
        base = common_ancestor(repository, tag.commit, line)
        if base in (None, tag.commit, line):
            continue
        if left is None or common_ancestor(repository, left, base) == left:
            left = base  # of a copy that is behind, and one that is not, the latter tells
    return left


def _count(repository: Path, commit: str, without: str) -> int:
    """How many commits one has that another lacks."""
    return int(run_git(repository, "rev-list", "--count", commit, f"^{without}"))


def _tags(repository: Path) -> Iterator[_Tag]:
    """The tags that are versions, the newest version first."""
    text = run_git(
        repository,
        "for-each-ref",
        "--format=%(refname:strip=2) %(objecttype) %(objectname) %(*objectname)",
        "refs/tags/v[0-9]*",
    )
    found = []
    for row in text.decode("utf-8", "replace").splitlines():
        name, kind, *hashes = row.split(" ")
        if _UPSTREAMS.fullmatch(name):
            found.append(_Tag(Version(name), hashes[-1] if kind == "tag" else hashes[0]))
    yield from sorted(found, key=lambda tag: tag.version, reverse=True)


def _heads(repository: Path) -> list[str]:
    """The commits at the ends of what may be the main line."""
    named = run_git(repository, "for-each-ref", "--format=%(objectname)", *_LINES)
    heads = named or run_git(repository, "rev-parse", "--verify", "HEAD", fails=True)
    return list(dict.fromkeys(heads.decode("ascii", "replace").split()))

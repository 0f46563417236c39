"""The commits that touched some files of a release, from git's history: nothing is checked out."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from kunlun_adapt.upstream.git_run import run_git
from kunlun_adapt.upstream.stores import PACKAGE

_FIELDS = ("%H", "%P", "%cs", "%an", "%s")


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit."""

    hash: str
    date: str
    author: str
    subject: str
    parents: tuple[str, ...] = ()

    @property
    def merge(self) -> bool:
        """Whether it brings others along."""
        return len(self.parents) > 1

    def to_json(self) -> dict[str, str | bool]:
        """A JSON object."""
        return {
            "hash": self.hash,
            "date": self.date,
            "author": self.author,
            "subject": self.subject,
            "merge": self.merge,
        }


def commits_between(
    repository: Path,
    since: str,
    until: str,
    files: Iterable[str] = (PACKAGE,),
    *,
    naming: str | None = None,
) -> tuple[Commit, ...]:
    """The commits after `since` up to `until` that touched files of the package, oldest first.

    Both are full hashes. A merge counts as the one step that it is on the branch of `until`. With
    `naming` only those are returned that changed a line with that word in it.
    Raises ReleaseError where git cannot tell.
    """
    # `sglang/` may lie at the top of the repository or in `python/`, and may have moved.
    paths = [f"{folder}{file}" for file in dict.fromkeys(files) for folder in ("", "python/")]
    text = run_git(
        repository,
        "--literal-pathspecs",
        "log",
        "--first-parent",
        "--topo-order",
        "--reverse",
        "--no-color",
        "--no-show-signature",
        "--format=tformat:" + "".join(f"{field}%x00" for field in _FIELDS),
        *(["--diff-merges=first-parent", f"-G{_word(naming)}"] if naming else []),
        f"{since}..{until}",
        "--",
        *paths,
    )
    fields = text.decode("utf-8", "replace").split("\0")
    found = []
    for at in range(0, len(fields) - len(_FIELDS), len(_FIELDS)):
        name, parents, date, author, subject = fields[at : at + len(_FIELDS)]
        found.append(
            Commit(name.strip(), date, _plain(author), _plain(subject), tuple(parents.split()))
        )
    return tuple(found)


def _word(name: str) -> str:
    """A pattern of git's for a name as a word of its own."""
    return rf"(^|[^A-Za-z0-9_]){re.escape(name)}($|[^A-Za-z0-9_])"


def _plain(text: str) -> str:
    """A text of a stranger's without what a terminal would obey."""
    return "".join(character if character.isprintable() else " " for character in text).strip()


def common_ancestor(repository: Path, one: str, other: str) -> str | None:
    """The newest commit that two full hashes have in common, or None."""
    found = run_git(repository, "merge-base", one, other, fails=True)
    return found.decode("ascii", "replace").strip() or None

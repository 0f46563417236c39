"""A release in a git repository, read from its object store: nothing is checked out."""

from __future__ import annotations

import re
import subprocess
import threading
import weakref
from collections.abc import Iterable
from pathlib import Path

from kunlun_adapt.upstream.errors import NoPackageError, ReleaseError
from kunlun_adapt.upstream.git_run import run_git, start_git
from kunlun_adapt.upstream.git_version import version_at
from kunlun_adapt.upstream.packaged import PROJECT, left_out
from kunlun_adapt.upstream.stores import MAX_FILE_BYTES, MAX_MEMBERS, PACKAGE, parents, unsafe

_LINKS = ("120000", "160000")
"""Modes of symbolic links and submodules, which hold no source text."""


class GitStore:
    """The files of one commit; raises ReleaseError where git cannot give them.

    `sglang/` may lie at the top of the commit, or in `python/` as in SGLang's own repository.
    """

    def __init__(self, repository: Path, revision: str) -> None:
        self._repository = repository
        self._guard = threading.Lock()
        self._reader: subprocess.Popen[bytes] | None = None
        if not repository.is_dir():
            raise ReleaseError(f"{repository} is not a folder", "give the path of a git repository")
        run_git(repository, "rev-parse", "--git-dir")
        found = run_git(
            repository, "rev-parse", "--verify", "--end-of-options", f"{revision}^0", fails=True
        )
        self.commit = found.decode("ascii", "replace").strip()
        if not re.fullmatch(r"[0-9a-f]{40,64}", self.commit):
            raise ReleaseError(
                f"{repository} has no revision {revision!r}",
                "name a tag, a branch or a commit; `git fetch --tags` brings upstream's",
            )
        self._blobs = self._listed()
        self._dirs = parents(self._blobs)
        if not self.exists(f"{PACKAGE}/__init__.py"):
            raise NoPackageError(
                f"{revision} of {repository} holds no SGLang",
                f"a commit with {PACKAGE}/ or python/{PACKAGE}/ at its top is needed",
            )

    def _listed(self) -> dict[str, str]:
        """The blob of each file of the package, by its path below the folder that holds it."""
        for folder in ("", "python/"):
            text = run_git(
                self._repository, "ls-tree", "-r", "-z", self.commit, "--", f"{folder}{PACKAGE}"
            )
            blobs: dict[str, str] = {}
            for row in text.split(b"\0"):
                head, tab, raw = row.partition(b"\t")
                fields = head.decode("ascii", "replace").split(" ")
                path = raw.decode("utf-8", "replace").removeprefix(folder)
                if tab and len(fields) == 3 and fields[0] not in _LINKS and not unsafe(path):
                    blobs[path] = fields[2]
            if len(blobs) > MAX_MEMBERS:
                raise ReleaseError(f"{self._repository} holds {len(blobs)} files of {PACKAGE}")
            if f"{PACKAGE}/__init__.py" in blobs:
                out = left_out(self._project(folder))
                return {path: blob for path, blob in blobs.items() if not out(path)}
        return {}

    def _project(self, folder: str) -> bytes:
        """The `pyproject.toml` beside the package; empty where there is none."""
        name = f"{self.commit}:{folder}{PROJECT}"
        return run_git(self._repository, "cat-file", "blob", name, fails=True)

    def stated_version(self) -> str | None:
        """The version of the code at the commit, or None where no tag tells."""
        return version_at(self._repository, self.commit)

    def read(self, path: str) -> bytes | None:
        blob = self._blobs.get(path)
        if blob is None:
            return None
        with self._guard:
            data = self._blob(blob)
        if data is None:
            raise ReleaseError(
                f"{self._repository}: git cannot read {path} of {self.commit[:12]}",
                "a clone made with --filter lacks objects, and `git fetch --refetch --no-filter` "
                "brings them; else try `git fsck`",
            )
        if len(data) > MAX_FILE_BYTES:
            raise ReleaseError(f"{path} of {self.commit[:12]} is too large to be source code")
        return data

    def exists(self, path: str) -> bool:
        return path in self._blobs

    def is_dir(self, path: str) -> bool:
        return path in self._dirs

    def files(self) -> Iterable[str]:
        return sorted(self._blobs)

    def _blob(self, name: str) -> bytes | None:
        """One object through a reader that stays open: a process per file would cost a minute."""
        if self._reader is None or self._reader.poll() is not None:
            self._reader = start_git(
                self._repository, "cat-file", "--batch", stderr=subprocess.DEVNULL
            )
            weakref.finalize(self, _end, self._reader)
        asking, answering = self._reader.stdin, self._reader.stdout
        assert asking is not None and answering is not None
        try:
            asking.write(f"{name}\n".encode("ascii"))
            asking.flush()
            head = answering.readline().decode("ascii", "replace").split()
            if len(head) != 3 or head[1] != "blob":
                return None
            size = int(head[2])
            data = answering.read(size)
            answering.read(1)
        except (OSError, ValueError):
            return None
        return data if len(data) == size else None


def _end(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()
    process.wait()

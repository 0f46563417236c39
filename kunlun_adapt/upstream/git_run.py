"""Run git over a repository: without a prompt, and without fetching what it lacks."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from kunlun_adapt.upstream.errors import ReleaseError

_TIMEOUT = 120
"""Seconds for one git command; listing a tree of SGLang takes well below one."""

_ANOTHERS = {
    *("GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_INDEX_FILE", "GIT_PREFIX"),
    *("GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_SHALLOW_FILE"),
    *("GIT_GRAFT_FILE", "GIT_REPLACE_REF_BASE", "GIT_NAMESPACE"),
}
"""What tells git which repository to read."""


def run_git(repository: Path, *arguments: str, fails: bool = False) -> bytes:
    """What a git command prints; empty where it may fail and does. Raises ReleaseError."""
    process = start_git(repository, *arguments)
    try:
        text, complaint = process.communicate(timeout=_TIMEOUT)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise ReleaseError(
            f"git {arguments[0]} in {repository} takes too long",
            "check the repository with `git status`",
        ) from None
    if process.returncode == 0:
        return text
    if fails:
        return b""
    said = complaint.decode("utf-8", "replace").strip().splitlines()
    raise ReleaseError(
        f"git cannot read {repository}: {said[0] if said else 'it gives no reason'}",
        "give the path of a git repository that `git -C PATH log` can read",
    )


def start_git(
    repository: Path, *arguments: str, stderr: int = subprocess.PIPE
) -> subprocess.Popen[bytes]:
    """Start a git command over a repository. Raises ReleaseError where git cannot be run."""
    # A partial clone would ask the network for what it lacks; a prompt would hang. In a hook of
    # git's the environment names that hook's repository, which would be read instead.
    environment = {
        **{name: value for name, value in os.environ.items() if name not in _ANOTHERS},
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
    }
    try:
        return subprocess.Popen(
            ["git", "-C", str(repository), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            env=environment,
        )
    except (OSError, ValueError) as error:  # ValueError: a null byte in the revision
        raise ReleaseError(f"git cannot be run: {error}", "install git") from error

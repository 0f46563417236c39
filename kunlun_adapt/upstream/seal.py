"""The recorded SHA-256 of a cached file, checked on each use without reading it each time.

The seal lies beside the file as `<file>.sha256` and holds the hash with the size and the time of
change that the file had when it was last hashed: while both stand, the hash is taken to stand.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from pathlib import Path


def seal(path: Path) -> str:
    """Hash a file, record it beside the file, and return the hexadecimal SHA-256."""
    digest = hashed(path)
    _write(path, digest)
    return digest


def seal_holds(path: Path) -> bool:
    """Whether the file is what was sealed; a file without a seal is sealed as it is.

    False where the content differs from the recorded hash.
    """
    try:
        recorded = json.loads(_seal_path(path).read_text(encoding="utf-8"))
        digest, size, changed = recorded["sha256"], recorded["size"], recorded["mtime_ns"]
    except FileNotFoundError:
        seal(path)
        return True
    except (ValueError, KeyError, TypeError):
        return False
    state = path.stat()
    if (state.st_size, state.st_mtime_ns) == (size, changed):
        return True
    if hashed(path) != digest:
        return False
    _write(path, digest)
    return True


def sealed(path: Path) -> str | None:
    """The recorded SHA-256 of a file that has not changed since; None where it has no seal."""
    try:
        recorded = json.loads(_seal_path(path).read_text(encoding="utf-8"))
        state = path.stat()
        unchanged = (state.st_size, state.st_mtime_ns) == (recorded["size"], recorded["mtime_ns"])
        digest = recorded["sha256"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return digest if unchanged and isinstance(digest, str) else None


def _seal_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.sha256")


def hashed(path: Path) -> str:
    """The hexadecimal SHA-256 of a file."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _write(path: Path, digest: str) -> None:
    state = path.stat()
    text = json.dumps(
        {"sha256": digest, "size": state.st_size, "mtime_ns": state.st_mtime_ns}, sort_keys=True
    )
    handle, scratch = tempfile.mkstemp(prefix=".seal-", dir=path.parent)
    with os.fdopen(handle, "w", encoding="utf-8") as stream:
        stream.write(text + "\n")
    os.replace(scratch, _seal_path(path))

"""How commands write files: whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import tempfile
from pathlib import Path


def need_folder(path: Path) -> None:
    """Raises OSError where the folder that a file is to lie in is none: it may be misspelt."""
    if not path.parent.is_dir():
        code = errno.ENOTDIR if path.parent.exists() else errno.ENOENT
        raise OSError(code, os.strerror(code), str(path.parent))


def write_whole(path: Path, text: str) -> None:
    """Write a text file in one step, into a folder that is there. Raises OSError.

    What cannot be replaced, such as `/dev/stdout` or a pipe, is written to as it is.
    """
    if path.exists() and not path.is_file():
        with path.open("w", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
        return
    need_folder(path)
    handle, half = tempfile.mkstemp(dir=path.parent, suffix=".part")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
        os.chmod(half, 0o644)
        os.replace(half, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(half)
        raise

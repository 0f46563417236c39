"""The files of a workspace on their way: changed in memory, and written all together or not."""

from __future__ import annotations

import difflib
import os
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from kunlun_adapt.diagnostics import AdaptError
from kunlun_adapt.locate import workspace_files

BOM = "\ufeff"


def read_texts(root: Path) -> dict[str, str]:
    """Return the text of every document of a workspace by its name. Raises AdaptError."""
    found = {}
    for name, path in workspace_files(root):
        try:
            found[name] = path.read_bytes().decode("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise AdaptError(f"{name} cannot be read: {error}") from error
        if found[name].startswith(BOM):
            raise AdaptError(f"{name} begins with a byte order mark", "save it as plain UTF-8")
    return found


def patch(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    """Return what differs as a unified diff that `patch -p1` and `git apply` take."""
    parts = []
    for name, text in after.items():
        if text != before[name]:
            lines = difflib.unified_diff(
                before[name].splitlines(keepends=True),
                text.splitlines(keepends=True),
                f"a/{name}",
                f"b/{name}",
            )
            parts += [_whole(line) for line in lines]
    return "".join(parts)


def _whole(line: str) -> str:
    return line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def write_texts(root: Path, before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """Write every changed file, or none; returns their names.

    Each is written beside its place first; they are then put in place one by one, and where that
    fails or is interrupted, what is in place already is put back. A file that somebody changed
    meanwhile is not written over. Raises AdaptError.
    """
    changed = [name for name, text in after.items() if text != before[name]]
    for name in changed:
        if (root / name).read_bytes().decode("utf-8", errors="replace") != before[name]:
            raise AdaptError(f"{name} was changed meanwhile", "run retarget again")
    made: dict[str, Path] = {}
    kept: dict[str, Path] = {}
    begun: list[str] = []
    try:
        for name in changed:
            made[name] = _beside(root / name, after[name])
            # To put it back later must not need room on a disk that is full.
            kept[name] = _beside(root / name, before[name])
        for name in changed:
            begun.append(name)
            os.replace(made[name], _real(root / name))
    except BaseException as error:  # an interruption too
        failed = root / name
        for name in begun:
            os.replace(kept[name], _real(root / name))
        if isinstance(error, OSError):
            raise AdaptError(
                f"{failed}: {error.strerror or error}; nothing was written",
                "run retarget again once it can be written",
            ) from error
        raise
    finally:
        _discard([*made.values(), *kept.values()])
    return changed


def _real(path: Path) -> Path:
    """Return the file itself where the name is a link to it."""
    return path.resolve()


def _beside(path: Path, text: str) -> Path:
    """Write a text to a new file in the folder of another one, with the same permissions."""
    real = _real(path)
    handle, name = tempfile.mkstemp(prefix=f".{real.name}-", suffix=".part", dir=real.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(text.encode())
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(name, real.stat().st_mode & 0o777)
    except BaseException:
        os.unlink(name)
        raise
    return Path(name)


def _discard(paths: Iterable[Path]) -> None:
    for path in paths:
        path.unlink(missing_ok=True)

"""Where a release's files come from: a wheel, read in place, or a directory.

A wheel is somebody else's archive. It is never unpacked, its member names are checked although
none becomes a path on disk, and what it claims to hold is capped before anything is read.
"""

from __future__ import annotations

import os
import threading
import zipfile
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Protocol

from kunlun_adapt.upstream.errors import ReleaseError
from kunlun_adapt.upstream.seal import hashed, sealed

#: The largest real wheel is 0.5.23 with 123 MB, of which its largest Python file is below 1 MB.
MAX_TOTAL_BYTES = 2 * 1024**3
MAX_FILE_BYTES = 32 * 1024**2
MAX_MEMBERS = 200_000
#: Real wheels compress 3 to 5 times as a whole.
MAX_RATIO = 100

PACKAGE = "sglang"


class Store(Protocol):
    """Read access to the files of one release by relative POSIX path."""

    def read(self, path: str) -> bytes | None:
        """The bytes of a file, or None where there is no such file."""
        ...

    def exists(self, path: str) -> bool:
        """Whether there is a file at the path."""
        ...

    def is_dir(self, path: str) -> bool:
        """Whether there is a folder at the path."""
        ...

    def files(self) -> Iterable[str]:
        """All files below `sglang/`, sorted."""
        ...


class WheelStore:
    """The files of a wheel; raises ReleaseError where it is damaged, hostile or not SGLang's.

    Beside a wheel in our own cache lies a seal that can be trusted; beside any other, anybody may
    have put one.
    """

    def __init__(self, path: Path, *, cached: bool = False) -> None:
        self._path = path
        self._cached = cached
        self._guard = threading.Lock()
        self._sha256: str | None = None
        try:
            self._zip = zipfile.ZipFile(path)
        except FileNotFoundError:
            raise ReleaseError(f"{path} does not exist", "check the path of the wheel") from None
        except (zipfile.BadZipFile, OSError, NotImplementedError, ValueError) as error:
            # A damaged directory may ask for a newer zip, or name files in no encoding.
            raise ReleaseError(
                f"{path.name} cannot be read as a wheel: {error}",
                "the file is truncated or not a wheel; download it again",
            ) from error
        try:
            self._members = self._checked_members()
        except ReleaseError:
            self._zip.close()
            raise
        self._dirs = parents(self._members)
        if not self.exists(f"{PACKAGE}/__init__.py"):
            self._zip.close()
            raise ReleaseError(
                f"{path.name} is not a wheel of SGLang: it holds no {PACKAGE}/__init__.py",
                "give the wheel that `pip download --no-deps sglang` fetches",
            )

    def _checked_members(self) -> dict[str, zipfile.ZipInfo]:
        name = self._path.name
        members: dict[str, zipfile.ZipInfo] = {}
        total = packed = 0
        infos = self._zip.infolist()
        if len(infos) > MAX_MEMBERS:
            raise ReleaseError(f"{name} holds {len(infos)} files, more than any SGLang wheel")
        for info in infos:
            if unsafe(info.filename):
                raise ReleaseError(
                    f"{name} holds a file whose name leaves the archive: {info.filename!r}",
                    "no real wheel does; do not use this file",
                )
            if info.is_dir():
                continue
            if info.filename in members:
                raise ReleaseError(
                    f"{name} holds {info.filename!r} twice",
                    "no real wheel does; do not use this file",
                )
            total += info.file_size
            packed += info.compress_size
            members[info.filename] = info
        if total > MAX_TOTAL_BYTES or total > MAX_RATIO * max(packed, 1024):
            raise ReleaseError(
                f"{name} claims to unpack to {total} bytes from {packed}, which no wheel does",
                "the file is damaged or hostile; do not use it",
            )
        return members

    def read(self, path: str) -> bytes | None:
        info = self._members.get(path)
        if info is None:
            return None
        if info.file_size > MAX_FILE_BYTES:
            raise ReleaseError(f"{self._path.name}: {path} is too large to be source code")
        try:
            with self._guard, self._zip.open(info) as stream:
                # The header may lie about the size, so the reading is bounded as well.
                data = stream.read(MAX_FILE_BYTES + 1)
        except (
            zipfile.BadZipFile,
            zlib.error,
            OSError,
            EOFError,
            NotImplementedError,
            RuntimeError,
        ) as error:
            raise ReleaseError(
                f"{self._path.name}: {path} cannot be read: {error}",
                "the wheel is damaged; download it again",
            ) from error
        if len(data) > MAX_FILE_BYTES:
            raise ReleaseError(f"{self._path.name}: {path} is larger than the wheel says")
        return data

    def exists(self, path: str) -> bool:
        return path in self._members

    def is_dir(self, path: str) -> bool:
        return path in self._dirs

    def files(self) -> Iterable[str]:
        return sorted(path for path in self._members if path.startswith(f"{PACKAGE}/"))

    def sha256(self) -> str:
        """The hexadecimal SHA-256 of the whole wheel; of a cached one it is on record."""
        if self._sha256 is None:
            known = sealed(self._path) if self._cached else None
            self._sha256 = known or hashed(self._path)
        return self._sha256

    def record(self) -> bytes | None:
        """The wheel's RECORD, which states the hash of each of its files, or None."""
        return self._dist_info("RECORD")

    def metadata_version(self) -> str | None:
        """The version that the wheel's METADATA states, or None."""
        text = self._dist_info("METADATA")
        return None if text is None else version_in_metadata(text)

    def _dist_info(self, wanted: str) -> bytes | None:
        for path in self._members:
            folder, _, name = path.partition("/")
            if name == wanted and folder.endswith(".dist-info"):
                return self.read(path)
        return None


class TreeStore:
    """The files of a directory that contains `sglang/`, but for those that are `out` of it."""

    def __init__(self, root: Path, out: Callable[[str], bool] | None = None) -> None:
        self._root = root
        self._out = out

    def _outside(self, path: str) -> bool:
        return unsafe(path) or (self._out is not None and self._out(path))

    def read(self, path: str) -> bytes | None:
        if self._outside(path):
            return None
        target = self._root / path
        try:
            if target.stat().st_size > MAX_FILE_BYTES:
                raise ReleaseError(f"{target} is too large to be source code")
            return target.read_bytes()
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return None
        except OSError as error:
            raise ReleaseError(f"{target} cannot be read: {error}") from error

    def exists(self, path: str) -> bool:
        return not self._outside(path) and (self._root / path).is_file()

    def is_dir(self, path: str) -> bool:
        return not self._outside(f"{path}/") and (self._root / path).is_dir()

    def files(self) -> Iterable[str]:
        found: list[str] = []
        for folder, names, files in os.walk(self._root / PACKAGE):
            names[:] = [name for name in names if name != "__pycache__"]
            relative = Path(folder).relative_to(self._root).as_posix()
            found += [f"{relative}/{name}" for name in files]
        return sorted(path for path in found if not self._outside(path))


def unsafe(path: str) -> bool:
    """Whether a relative path is absolute, climbs, or is spelled for another system."""
    return (
        not path
        or path.startswith("/")
        or "\\" in path
        or "\0" in path
        or path[1:2] == ":"
        or ".." in path.split("/")
    )


def version_in_metadata(text: bytes) -> str | None:
    """The `Version:` field of a METADATA file's header, or None."""
    for line in text.split(b"\n"):
        if not line.strip():
            return None
        key, _, value = line.partition(b":")
        if key.strip().lower() == b"version":
            return value.decode("utf-8", "replace").strip() or None
    return None


def parents(paths: Iterable[str]) -> frozenset[str]:
    """Every folder above the paths."""
    found: set[str] = set()
    for path in paths:
        folder = path.rpartition("/")[0]
        while folder and folder not in found:
            found.add(folder)
            folder = folder.rpartition("/")[0]
    return frozenset(found)

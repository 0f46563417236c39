"""The index of a release on disk: one file per content, made once however many ask for it.

A file holds a magic line, the length of its header, the header, and then blocks: a row for each
module and the tables that lead to modules. Blocks are compressed and decoded when they are asked
for. A checksum over all of it tells a damaged file, which is built anew.
"""

from __future__ import annotations

import contextlib
import os
import struct
import sys
import tempfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import msgpack

from kunlun_adapt.upstream import body_text, describe, found, lazy, module, symbols, syntax
from kunlun_adapt.upstream.code import code_digest
from kunlun_adapt.upstream.fetch import default_cache_dir
from kunlun_adapt.upstream.index import records, rows, scan, walk
from kunlun_adapt.upstream.index.build import Built
from kunlun_adapt.upstream.index.digest import content_digest

_MAGIC = b"KAINDEX1"
_HEAD = struct.Struct(">8sII")
_WAIT = 600
"""Seconds to wait for another process that builds the same index."""


@dataclass(frozen=True, slots=True)
class Stored:
    """An index as its file has it; blocks are decoded by `row` and `table`."""

    digest: str
    modules: tuple[tuple[str, str], ...]
    data: bytes
    places: tuple[tuple[int, int], ...]
    tables: dict[str, tuple[int, int]]

    def row(self, number: int) -> list[Any] | None:
        """The row of a module; None where it could not be parsed."""
        row: list[Any] | None = self._block(self.places[number])
        return row

    def table(self, name: str) -> dict[Any, list[int]]:
        """A table from a key to the numbers of modules."""
        return self._block(self.tables[name]) or {}

    def _block(self, place: tuple[int, int]) -> Any:
        start, length = place
        if not length:
            return None
        packed = zlib.decompress(self.data[start : start + length])
        return msgpack.unpackb(packed, strict_map_key=False)


@cache
def revision() -> str:
    """What the file's content depends on beside the release: our own code and the interpreter."""
    parts = (body_text, describe, found, lazy, module, symbols, syntax, records, rows, scan, walk)
    code = code_digest(*(str(part.__file__) for part in parts), __file__)
    return f"py{sys.version_info[0]}{sys.version_info[1]}-{code[:12]}"


def held_index(digest: str, cache_dir: Path | None = None) -> Stored | None:
    """The index with a digest where the cache has it whole, else None."""
    folder = (cache_dir or default_cache_dir()) / "indexes"
    return _read(folder / f"{digest[:32]}-{revision()}.index", digest)


def stored_index(digest: str, make: Callable[[], Built], cache_dir: Path | None = None) -> Stored:
    """The index with a digest: read where it is cached, else made, by one process at a time.

    A cache folder that cannot be written costs the cache, not the answer.
    """
    folder = (cache_dir or default_cache_dir()) / "indexes"
    path = folder / f"{digest[:32]}-{revision()}.index"
    held = _read(path, digest)
    if held is not None:
        return held
    from filelock import FileLock

    try:
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        guard = FileLock(folder / f".{digest[:32]}.lock", timeout=_WAIT)
        guard.acquire()
    except (OSError, TimeoutError):
        return parsed(packed(digest, make()), digest)
    try:
        held = _read(path, digest)
        if held is not None:
            return held
        built = make()
        data = packed(digest, built)
        # A wheel whose RECORD lies must not speak for the release that it names.
        if content_digest(built.hashes) == digest:
            _write(path, data)
        return parsed(data, digest)
    finally:
        guard.release()


def packed(digest: str, built: Built) -> bytes:
    """The bytes of an index file."""
    blocks: list[bytes] = []
    offset = 0

    def place(block: bytes) -> tuple[int, int]:
        nonlocal offset
        blocks.append(block)
        offset += len(block)
        return offset - len(block), len(block)

    header = {
        "digest": digest,
        "modules": built.modules,
        "places": [place(row) for row in built.rows],
        "tables": {name: place(zlib.compress(table, 1)) for name, table in built.tables.items()},
    }
    head: bytes = msgpack.packb(header)
    body = b"".join([head, *blocks])
    return _HEAD.pack(_MAGIC, len(head), zlib.crc32(body)) + body


def parsed(data: bytes, digest: str) -> Stored:
    """Read a file's bytes; raises ValueError where they are not what was written."""
    if len(data) < _HEAD.size:
        raise ValueError("too short")
    magic, length, checksum = _HEAD.unpack_from(data)
    if magic != _MAGIC or zlib.crc32(memoryview(data)[_HEAD.size :]) != checksum:
        raise ValueError("damaged")
    start = _HEAD.size + length
    header = msgpack.unpackb(data[_HEAD.size : start], strict_map_key=False)
    if header["digest"] != digest:
        raise ValueError("of another release")
    return Stored(
        digest,
        tuple((name, file) for name, file in header["modules"]),
        data,
        tuple((start + offset, size) for offset, size in header["places"]),
        {name: (start + at, size) for name, (at, size) in header["tables"].items()},
    )


def _read(path: Path, digest: str) -> Stored | None:
    try:
        return parsed(path.read_bytes(), digest)
    except OSError:
        return None
    except (ValueError, KeyError, TypeError, msgpack.UnpackException):
        return None  # damaged, or another tool's: it is built anew and replaced


def _write(path: Path, data: bytes) -> None:
    """Put a file in place whole, and drop what older code of ours left of the same release."""
    scratch = ""
    try:
        handle, scratch = tempfile.mkstemp(prefix=".index-", dir=path.parent)
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
        os.replace(scratch, path)
        python = path.name.rpartition("-")[0]
        for old in path.parent.glob(f"{python}-*.index"):
            if old != path:
                old.unlink(missing_ok=True)
    except OSError:
        # A full disk costs the cache, not the answer.
        with contextlib.suppress(OSError):
            os.unlink(scratch)

"""Generated text kept between processes, under the hash of everything that it was made from."""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import stat
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

logger = logging.getLogger("kunlun_adapt")

CACHE = "KUNLUN_ADAPT_CACHE"
KEPT = 24
"""Entries that stay; each edit of a document makes a new one for each release and profile."""


@dataclass(frozen=True, slots=True)
class Cached:
    """The generated modules, and the hashes of the upstream files that they were made against."""

    modules: Mapping[str, str]
    files: Mapping[str, str]


def folder() -> Path:
    """Return the user's private cache folder for generated text."""
    given = os.environ.get(CACHE)
    if given:
        root = Path(given)
    else:
        import platformdirs

        root = Path(platformdirs.user_cache_dir("kunlun-adapt", appauthor=False))
    return root / "generated"


def key(parts: Iterable[tuple[str, bytes]]) -> str:
    """Return the hash of named byte strings, in their order."""
    digest = hashlib.sha256()
    for name, content in parts:
        digest.update(f"{name}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()


def load(name: str) -> Cached | None:
    """Return what is kept under `name`, or None; an unreadable entry counts as none.

    What another user owns or may write to is not trusted, since its text would be executed.
    """
    path = folder() / f"{name}.json"
    try:
        if _untrusted(os.stat(path.parent)):
            raise PermissionError(f"{path.parent} belongs to another user, or others may write it")
        with path.open("rb") as stream:
            if _untrusted(os.fstat(stream.fileno())):
                raise PermissionError("it belongs to another user, or others may write it")
            return _read(stream.read())
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        logger.warning("ignoring the cached text %s: %s", path, error)
        return None


def save(name: str, cached: Cached) -> None:
    """Keep `cached` under `name`, atomically and readable by this user only; failure is no harm."""
    half = ""
    try:
        place = folder()
        place.mkdir(parents=True, exist_ok=True, mode=0o700)
        body = json.dumps({"modules": dict(cached.modules), "files": dict(cached.files)})
        handle, half = tempfile.mkstemp(dir=place, suffix=".part")
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(body)
        os.replace(half, place / f"{name}.json")
        _drop_oldest(place)
    except OSError as error:
        logger.warning("the generated text could not be cached: %s", error)
        with contextlib.suppress(OSError):
            os.unlink(half)


def _read(body: bytes) -> Cached:
    data = json.loads(body.decode("utf-8"))
    modules, files = dict(data["modules"]), dict(data["files"])
    if not modules or not all(isinstance(v, str) for v in (*modules.values(), *files.values())):
        raise ValueError("it holds no text")
    return Cached(modules, files)


def _untrusted(status: os.stat_result) -> bool:
    if not hasattr(os, "getuid"):
        return False
    return status.st_uid != os.getuid() or bool(status.st_mode & (stat.S_IWGRP | stat.S_IWOTH))


def _drop_oldest(place: Path) -> None:
    """Keep the cache small; another process may be at the same work."""
    dated = []
    for path in place.glob("*.json"):
        with contextlib.suppress(FileNotFoundError):
            dated.append((path.stat().st_mtime, path))
    for _, path in sorted(dated, reverse=True)[KEPT:]:
        path.unlink(missing_ok=True)

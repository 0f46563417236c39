"""Generated text kept between processes, under the hash of everything that it was made from."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

logger = logging.getLogger("kunlun_adapt")

CACHE = "KUNLUN_ADAPT_CACHE"


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

    A folder or file that another user owns is not trusted, since its text would be executed.
    """
    path = folder() / f"{name}.json"
    try:
        if _foreign(path.parent) or _foreign(path):
            logger.warning("ignoring %s: it belongs to another user", path)
            return None
        data = json.loads(path.read_text(encoding="utf-8"))
        return Cached(dict(data["modules"]), dict(data["files"]))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        logger.warning("ignoring %s: %s", path, error)
        return None


def save(name: str, cached: Cached) -> None:
    """Keep `cached` under `name`, atomically and readable by this user only; failure is no harm."""
    try:
        place = folder()
        place.mkdir(parents=True, exist_ok=True, mode=0o700)
        body = json.dumps({"modules": dict(cached.modules), "files": dict(cached.files)})
        handle, half = tempfile.mkstemp(dir=place, suffix=".part")
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(body)
        os.replace(half, place / f"{name}.json")
    except OSError as error:
        logger.warning("the generated text could not be cached: %s", error)


def _foreign(path: Path) -> bool:
    return hasattr(os, "getuid") and path.stat().st_uid != os.getuid()

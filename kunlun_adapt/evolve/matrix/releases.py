"""The releases that the matrix shows where none is named."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from kunlun_adapt.documents import in_range
from kunlun_adapt.upstream import Lock
from kunlun_adapt.upstream.fetch import default_cache_dir


def shown_releases(claim: str, lock: Lock, cache_dir: Path | None = None) -> tuple[str, ...]:
    """Return what the lock holds, and what of the claim is held as a wheel; oldest first."""
    held = {version for version in held_wheels(cache_dir) if in_range(claim, str(version))}
    return tuple(str(v) for v in sorted({*map(Version, lock.releases), *held}))


def held_wheels(cache_dir: Path | None = None) -> Iterable[Version]:
    """Yield the versions whose wheels lie in the cache, so that nothing has to be fetched."""
    folder = (cache_dir or default_cache_dir()) / "releases"
    for path in folder.glob("sglang-*.whl"):
        try:
            yield parse_wheel_filename(path.name)[1]
        except (InvalidWheelFilename, InvalidVersion):
            continue  # not what we fetched

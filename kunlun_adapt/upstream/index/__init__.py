"""The symbols of a whole release: who defines, imports, calls and derives from what.

Reading a release of 4,700 modules takes seconds, so the result is kept on disk under the hash of
the release's content; what is asked for is decoded from there.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from kunlun_adapt.upstream.fetch import Progress
from kunlun_adapt.upstream.index.build import FEW_MODULES, scan_release
from kunlun_adapt.upstream.index.cache import packed, parsed, stored_index
from kunlun_adapt.upstream.index.digest import content_digest, module_hashes
from kunlun_adapt.upstream.index.index import Index
from kunlun_adapt.upstream.index.records import CallForm, Definition, Import, Reference
from kunlun_adapt.upstream.release import Release
from kunlun_adapt.upstream.resolve import Resolver

__all__ = [
    "CallForm",
    "Definition",
    "Import",
    "Index",
    "Reference",
    "open_index",
    "release_digest",
]


def open_index(
    release: Release,
    *,
    resolver: Resolver | None = None,
    progress: Progress | None = None,
    cache_dir: Path | None = None,
) -> Index:
    """Open the index of a release, built first where the cache does not have it.

    The index answers through `resolver`, or one of its own. Safe to call from many processes at
    once: one builds, the others wait and load. A tree of a few modules is read each time.
    """
    make = partial(scan_release, release, progress)
    hashes = module_hashes(release)
    digest = content_digest(hashes)
    if len(hashes) < FEW_MODULES:
        stored = parsed(packed(digest, make()), digest)
    else:
        stored = stored_index(digest, make, cache_dir)
    index = Index(resolver or Resolver(release), stored)
    index.lookup.known = index.table
    return index


def release_digest(release: Release) -> str:
    """The hash of a release's Python files, the same for a wheel and for what it unpacks to."""
    return content_digest(module_hashes(release))

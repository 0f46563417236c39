"""The symbols of a whole release: who defines, imports, calls and derives from what.

Reading a release of 4,700 modules takes seconds, so the result is kept on disk under the hash of
the release's content; what is asked for is decoded from there.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from weakref import WeakKeyDictionary

from kunlun_adapt.upstream.fetch import Progress
from kunlun_adapt.upstream.index.build import FEW_MODULES, scan_release
from kunlun_adapt.upstream.index.cache import Stored, packed, parsed, stored_index
from kunlun_adapt.upstream.index.cache import held_index as cached_index
from kunlun_adapt.upstream.index.digest import content_digest, module_hashes, stated_hashes
from kunlun_adapt.upstream.index.index import Index
from kunlun_adapt.upstream.index.records import CallForm, Definition, Import, Reference
from kunlun_adapt.upstream.release import Release
from kunlun_adapt.upstream.resolve import Resolver
from kunlun_adapt.upstream.stores import Store

__all__ = [
    "CallForm",
    "Definition",
    "Import",
    "Index",
    "Reference",
    "held_index",
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
    digest = release_digest(release)
    if sum(1 for _ in release.modules()) < FEW_MODULES:
        stored = parsed(packed(digest, make()), digest)
    else:
        stored = stored_index(digest, make, cache_dir)
    return _opened(resolver or Resolver(release), stored)


def held_index(resolver: Resolver, cache_dir: Path | None = None) -> Index | None:
    """The index of a wheel where the cache has it; a folder's files would have to be read first."""
    if not stated_hashes(resolver.release):
        return None
    stored = cached_index(release_digest(resolver.release), cache_dir)
    return None if stored is None else _opened(resolver, stored)


def _opened(resolver: Resolver, stored: Stored) -> Index:
    index = Index(resolver, stored)
    index.lookup.known = index.table
    return index


_DIGESTS: WeakKeyDictionary[Store, str] = WeakKeyDictionary()


def release_digest(release: Release) -> str:
    """The hash of a release's Python files, the same for a wheel and for what it unpacks to."""
    if release.store not in _DIGESTS:
        _DIGESTS[release.store] = content_digest(module_hashes(release))
    return _DIGESTS[release.store]

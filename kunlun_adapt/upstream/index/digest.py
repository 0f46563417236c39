"""One hash for all that the index reads: the paths and hashes of a release's Python files.

A wheel states the hash of each of its files in RECORD, so nothing is read to know which release
it is; a folder's files are hashed. Both give the same digest for the same files.
"""

from __future__ import annotations

import base64
import binascii
import csv
import hashlib
import io

from kunlun_adapt.upstream.release import Release, module_of
from kunlun_adapt.upstream.stores import WheelStore


def stated_hashes(release: Release) -> dict[str, str]:
    """The SHA-256 that the release itself states of its files; empty where it states none."""
    text = release.store.record() if isinstance(release.store, WheelStore) else None
    if text is None:
        return {}
    found: dict[str, str] = {}
    for row in csv.reader(io.StringIO(text.decode("utf-8", "replace"))):
        if len(row) < 2 or not row[1].startswith("sha256="):
            continue
        encoded = row[1].removeprefix("sha256=")
        try:
            digest = base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4))
        except (binascii.Error, ValueError):
            continue
        if len(digest) == 32:
            found[row[0]] = digest.hex()
    return found


def module_hashes(release: Release) -> dict[str, str]:
    """The SHA-256 of each module's file: what the release states, else of what is read."""
    known = stated_hashes(release)
    return {
        path: known.get(path) or release.sha256(path)
        for path in release.files()
        if module_of(path) is not None
    }


def content_digest(hashes: dict[str, str]) -> str:
    """The digest of a release whose files have these hashes."""
    digest = hashlib.sha256()
    for path, value in sorted(hashes.items()):
        digest.update(f"{value} {path}\n".encode("utf-8", "backslashreplace"))
    return digest.hexdigest()

"""The lock: the facts of upstream that the bindings were verified against.

`adapt.lock` is JSON Lines, so that a changed symbol is one changed line in review. The first line
states the format; then comes a block per release, oldest first: one line per target, one per
upstream file that holds such a symbol, one per binding for how upstream uses it (what its callers
pass, what it calls, what the checks found), and a last line with the digest of what these rest on.
Each part is sorted. A binding adds lines inside the blocks and a release adds a block after the
last line of another, so that branches which do either merge by lines. There is no time in it: the
same facts give the same bytes. Reading needs the standard library alone, since each process of a
server does it at start.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kunlun_adapt.upstream.errors import LockError
from kunlun_adapt.upstream.symbols import Missing, Symbol

if TYPE_CHECKING:
    from kunlun_adapt.upstream.resolve import Resolver

LOCK_FORMAT = 1
MAX_LOCK_BYTES = 64 * 1024**2


@dataclass(frozen=True, slots=True)
class LockEntry:
    """One target in one release; `members` are a class's locked member names, sorted."""

    target: str
    release: str
    symbol: Symbol
    members: tuple[str, ...] = ()


@dataclass(frozen=True)
class Lock:
    """All locked facts; `hashes` maps a release to the SHA-256 of each of its bound files.

    `usage` holds, by release, what was found about upstream's own uses of the targets, as the
    checks wrote it: a `digest`, and a row per binding under `bindings`. Finding it again would
    take reading the whole release.
    """

    entries: Mapping[tuple[str, str], LockEntry] = field(default_factory=dict)
    hashes: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    usage: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def releases(self) -> tuple[str, ...]:
        """The locked versions, oldest first."""
        return tuple(sorted(self.hashes, key=_version_key))

    def entry(self, release: str, target: str) -> LockEntry | None:
        """What is locked of a target in a release, or None."""
        return self.entries.get((release, target))

    def symbol(self, release: str, target: str) -> Symbol | None:
        """The locked symbol of a target in a release, or None."""
        entry = self.entries.get((release, target))
        return None if entry is None else entry.symbol

    def targets(self, release: str) -> tuple[str, ...]:
        """The targets that are locked in a release, sorted."""
        return tuple(sorted(target for version, target in self.entries if version == release))

    def files(self, release: str) -> dict[str, str]:
        """The SHA-256 of each upstream file that holds a locked symbol, by its path."""
        return dict(self.hashes.get(release, {}))

    def replaced(self, other: Lock) -> Lock:
        """This lock with every release of `other` in place of its own."""
        kept = {key: item for key, item in self.entries.items() if key[0] not in other.hashes}
        uses = {key: item for key, item in self.usage.items() if key not in other.hashes}
        return Lock(
            {**kept, **other.entries},
            {**self.hashes, **other.hashes},
            {**uses, **other.usage},
        )

    def without(self, release: str) -> Lock:
        """This lock with nothing of one release."""
        return Lock(
            {key: item for key, item in self.entries.items() if key[0] != release},
            {key: item for key, item in self.hashes.items() if key != release},
            {key: item for key, item in self.usage.items() if key != release},
        )

    def with_usage(self, release: str, row: Mapping[str, Any]) -> Lock:
        """This lock with what was found about upstream's uses in a release."""
        return Lock(self.entries, self.hashes, {**self.usage, release: row})

    def text(self) -> str:
        """The lock file's text."""
        rows: list[dict[str, Any]] = [{"lock": LOCK_FORMAT}]
        for release in self.releases:
            rows += [_target_row(self.entries[release, t]) for t in self.targets(release)]
            for file, digest in sorted(self.hashes[release].items()):
                rows.append({"release": release, "file": file, "sha256": digest})
            usage = self.usage.get(release, {})
            for id, row in sorted(usage.get("bindings", {}).items()):
                rows.append({"release": release, "binding": id, **row})
            if "digest" in usage:
                rows.append({"release": release, "usage": usage["digest"]})
        return "".join(
            json.dumps(row, ensure_ascii=False, separators=(", ", ": ")) + "\n" for row in rows
        )


def _target_row(entry: LockEntry) -> dict[str, Any]:
    row: dict[str, Any] = {"target": entry.target, "release": entry.release}
    symbol = entry.symbol.to_json()
    if symbol.get("path") == entry.target:
        del symbol["path"]
    row["symbol"] = symbol
    if entry.members:
        row["members"] = list(entry.members)
    return row


class LockFacts:
    """The facts of one release as the lock has them; a target that is not in it is missing."""

    def __init__(self, lock: Lock, release_version: str) -> None:
        self._lock = lock
        self._version = release_version

    @property
    def version(self) -> str:
        """The release's version."""
        return self._version

    def resolve(self, path: str) -> Symbol | Missing:
        """The locked symbol of a path."""
        symbol = self._lock.symbol(self._version, path)
        if symbol is not None:
            return symbol
        if self._version not in self._lock.hashes:
            detail = f"SGLang {self._version} is not in the lock"
        else:
            detail = f"the lock has no such target in SGLang {self._version}"
        return Missing(path, "symbol_missing", detail=detail)

    def members(self, class_path: str) -> dict[str, Symbol]:
        """The members of a class that was locked together with them; empty otherwise."""
        entry = self._lock.entry(self._version, class_path)
        found: dict[str, Symbol] = {}
        for name in () if entry is None else entry.members:
            symbol = self._lock.symbol(self._version, f"{class_path}.{name}")
            if symbol is not None:
                found[name] = symbol
        return found


def lock_release(
    resolver: Resolver, targets: Iterable[str], *, classes: Iterable[str] = ()
) -> tuple[Lock, tuple[Missing, ...]]:
    """Lock the targets in the resolver's release, and the classes with all their members.

    Returns the lock of that one release and the targets that do not resolve, which are not in it.
    """
    version = resolver.version
    entries: dict[tuple[str, str], LockEntry] = {}
    missing: list[Missing] = []
    for target in dict.fromkeys(targets):
        symbol = resolver.resolve(target)
        if isinstance(symbol, Missing):
            missing.append(symbol)
        else:
            entries[version, target] = LockEntry(target, version, symbol)
    for target in dict.fromkeys(classes):
        symbol = resolver.resolve(target)
        if isinstance(symbol, Missing):
            missing.append(symbol)
            continue
        members = resolver.members(target)
        entries[version, target] = LockEntry(target, version, symbol, tuple(sorted(members)))
        for name, member in members.items():
            path = f"{target}.{name}"
            entries.setdefault((version, path), LockEntry(path, version, member))
    files: set[str] = set()
    for entry in entries.values():
        # A re-export has to stand as well, so the files on the way count.
        places = [entry.symbol.location, *entry.symbol.via]
        places += [variant.location for variant in entry.symbol.variants]
        files |= {place.file for place in places if resolver.release.exists(place.file)}
    hashes = {file: resolver.release.sha256(file) for file in sorted(files)}
    return Lock(entries, {version: hashes}), tuple(missing)


def read_lock(path: Path) -> Lock:
    """Read a lock file; raises LockError with file and line, or OSError where there is none."""
    if path.stat().st_size > MAX_LOCK_BYTES:
        raise LockError(str(path), 1, "the file is too large to be a lock")
    try:
        text = path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise LockError(str(path), 1, "the file is not UTF-8") from error
    return parse_lock(text, str(path))


def parse_lock(text: str, file: str = "adapt.lock") -> Lock:
    """Read a lock file's text; raises LockError with file and line."""
    lines = text.split("\n")
    header = _row(lines[0], file, 1)
    if header.get("lock") != LOCK_FORMAT:
        raise LockError(
            file,
            1,
            f'the first line must be {{"lock": {LOCK_FORMAT}}}; is it from a newer version?',
        )
    entries: dict[tuple[str, str], LockEntry] = {}
    hashes: dict[str, dict[str, str]] = {}
    usage: dict[str, dict[str, Any]] = {}
    for number, line in enumerate(lines[1:], start=2):
        if not line.strip():
            continue
        row = _row(line, file, number)
        release = row.get("release")
        if not isinstance(release, str):
            raise LockError(file, number, "'release' is missing or is not a string")
        if "target" in row:
            entry = _entry(row, release, file, number)
            if (release, entry.target) in entries:
                raise LockError(file, number, f"{entry.target} is locked twice for {release}")
            entries[release, entry.target] = entry
            hashes.setdefault(release, {})
        elif isinstance(row.get("file"), str) and isinstance(row.get("sha256"), str):
            held = hashes.setdefault(release, {}).setdefault(row["file"], row["sha256"])
            if held != row["sha256"]:
                raise LockError(file, number, f"{row['file']} is locked twice for {release}")
        elif isinstance(row.get("binding"), str):
            bindings = usage.setdefault(release, {}).setdefault("bindings", {})
            id = row["binding"]
            if id in bindings:
                raise LockError(file, number, f"{id} is locked twice for {release}")
            bindings[id] = {k: v for k, v in row.items() if k not in ("release", "binding")}
        elif isinstance(row.get("usage"), str):
            digest = usage.setdefault(release, {}).setdefault("digest", row["usage"])
            if digest != row["usage"]:
                raise LockError(file, number, f"the uses of {release} are locked twice")
        elif not isinstance(row.get("usage"), dict):  # the form of earlier locks: found anew
            what = "a 'target', a 'file' and hash, a 'binding', nor 'usage'"
            raise LockError(file, number, f"the line has neither {what}")
    return Lock(entries, hashes, usage)


def write_lock(path: Path, lock: Lock) -> None:
    """Write a lock file whole or not at all."""
    handle, scratch = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as stream:
            stream.write(lock.text())
        # mkstemp makes private files; a lock is a source file like any other.
        mode = path.stat().st_mode & 0o777 if path.exists() else 0o644
        os.chmod(scratch, mode)
        os.replace(scratch, path)
    except BaseException:
        os.unlink(scratch)
        raise


def _row(line: str, file: str, number: int) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise LockError(file, number, f"the line is not JSON: {error}") from error
    if not isinstance(row, dict):
        raise LockError(file, number, "the line is not a JSON object")
    return row


def _entry(row: dict[str, Any], release: str, file: str, number: int) -> LockEntry:
    target, symbol, members = row["target"], row.get("symbol"), row.get("members", [])
    if not isinstance(target, str) or not isinstance(symbol, dict):
        raise LockError(file, number, "'target' must be a string and 'symbol' an object")
    if not isinstance(members, list) or not all(isinstance(item, str) for item in members):
        raise LockError(file, number, "'members' is not a list of names")
    try:
        read = Symbol.from_json({"path": target, **symbol})
    except (ValueError, TypeError, AttributeError) as error:
        raise LockError(file, number, f"the symbol of {target} is malformed: {error}") from error
    return LockEntry(target, release, read, tuple(members))


def _version_key(release: str) -> Any:
    # Imported here: a process that only reads a lock never sorts.
    from packaging.version import InvalidVersion, Version

    try:
        return (1, Version(release), release)
    except InvalidVersion:
        return (0, Version("0"), release)

"""What a wheel was asked before, on disk: the same wheel and the same code give the same answers.

An entry is kept under the hash of the whole wheel and of the code that reads releases, so that it
can neither be outdated nor speak for another wheel. What cannot be read counts as not kept.
"""

from __future__ import annotations

import contextlib
import os
import struct
import sys
import tempfile
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import msgpack

from kunlun_adapt.upstream.code import code_digest
from kunlun_adapt.upstream.fetch import default_cache_dir
from kunlun_adapt.upstream.release import Release
from kunlun_adapt.upstream.stores import WheelStore
from kunlun_adapt.upstream.symbols import (
    Location,
    Missing,
    Parameter,
    Signature,
    Symbol,
    Variant,
)

MOST = 20_000
"""Answers that are kept; beyond that only those that the last run asked for."""
REVISIONS = 3
"""Entries that are kept of one wheel, each of other code of ours."""

USAGE = "usage"
"""Answers to what documents say of a release: each edit of one makes another."""
LATEST = 8
"""So many of those are kept."""

_MAGIC = b"KAANSWR1"
_HEAD = struct.Struct(">8sI")

Kept = dict[str, dict[str, Any]]


@cache
def revision() -> str:
    """What an answer depends on beside the wheel: the code that reads, and the interpreter."""
    here = Path(__file__).parent
    code = code_digest(*(str(file) for file in sorted(here.rglob("*.py"))))
    return f"py{sys.version_info[0]}{sys.version_info[1]}-{code[:12]}"


class Answers:
    """The answers about one wheel: plain values by the kind of question and what is asked about."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._held = _read(path)
        self._asked: Kept = {}
        self._new = False

    def recall(self, kind: str, key: str, make: Callable[[], Any]) -> Any:
        """The kept answer, else what `make` says, which is kept for the next run."""
        asked = self._asked.setdefault(kind, {})
        if key not in asked:
            held = self._held.get(kind, {})
            if key in held:
                asked[key] = held[key]
            else:
                asked[key], self._new = make(), True
        return asked[key]

    def keep(self) -> None:
        """Write what is new; another process may do so too, and the last one stands."""
        if not self._new:
            return
        self._new = False
        kept = self._asked
        if sum(map(len, self._held.values())) + sum(map(len, kept.values())) <= MOST:
            kinds = dict.fromkeys((*self._held, *self._asked))
            kept = {k: {**self._held.get(k, {}), **self._asked.get(k, {})} for k in kinds}
        if USAGE in kept:
            kept[USAGE] = dict([*kept[USAGE].items()][-LATEST:])
        _write(self._path, kept)


def answers_of(release: Release, cache_dir: Path | None = None) -> Answers | None:
    """What is kept of a wheel; a folder's files may change, and nothing is kept of them."""
    if not isinstance(release.store, WheelStore):
        return None
    wheel = release.store.sha256()
    folder = (cache_dir or default_cache_dir()) / "answers"
    return Answers(folder / f"{wheel[:32]}-{revision()}.answers")


def _read(path: Path) -> Kept:
    try:
        data = path.read_bytes()
        magic, checksum = _HEAD.unpack_from(data)
        body = memoryview(data)[_HEAD.size :]
        if magic != _MAGIC or zlib.crc32(body) != checksum:
            return {}
        kept = msgpack.unpackb(body)
    except (OSError, ValueError, struct.error, msgpack.UnpackException):
        return {}
    sound = isinstance(kept, dict) and all(isinstance(held, dict) for held in kept.values())
    return kept if sound else {}


def _write(path: Path, kept: Kept) -> None:
    """Put a file in place whole, and drop what much older code of ours kept of the same wheel."""
    scratch = ""
    try:
        path.parent.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        body = msgpack.packb(kept)
        handle, scratch = tempfile.mkstemp(prefix=".answers-", dir=path.parent)
        with os.fdopen(handle, "wb") as stream:
            stream.write(_HEAD.pack(_MAGIC, zlib.crc32(body)) + body)
        os.replace(scratch, path)
        same = path.parent.glob(f"{path.name.rpartition('-')[0]}-*.answers")
        # Two installations may take turns on one machine.
        for old in sorted(same, key=lambda file: file.stat().st_mtime)[:-REVISIONS]:
            old.unlink(missing_ok=True)
    except (OSError, ValueError, TypeError, OverflowError):
        # A full disk costs the cache, not the answer; text that is no UTF-8 cannot be packed.
        with contextlib.suppress(OSError):
            os.unlink(scratch)


def answer_row(found: Symbol | Missing) -> list[Any]:
    """A symbol or a miss, without the path that was asked for, as plain values."""
    if isinstance(found, Missing):
        at = None if found.at is None else [found.at.file, found.at.line]
        return [found.reason, at, found.detail, found.deepest]
    return [
        found.resolved,
        found.kind,
        [found.location.file, found.location.line],
        found.module,
        found.qualname,
        _signature_row(found.signature),
        found.decorators,
        found.guard,
        [
            [
                [item.location.file, item.location.line],
                item.guard,
                _signature_row(item.signature),
                item.kind,
                item.resolved,
                item.fingerprint,
            ]
            for item in found.variants
        ],
        [[item.file, item.line] for item in found.via],
        found.inherited_from,
        found.bases,
        found.fingerprint,
        found.value,
        found.is_async,
    ]


def answer_of(path: str, row: list[Any]) -> Symbol | Missing:
    """The symbol or the miss that a row was made from."""
    if len(row) == 4:
        reason, at, detail, deepest = row
        return Missing(path, reason, None if at is None else Location(*at), detail, deepest)
    resolved, kind, at, module, qualname, signature, decorators, guard = row[:8]
    variants, via, inherited_from, bases, fingerprint, value, is_async = row[8:]
    return Symbol(
        path=path,
        resolved=resolved,
        kind=kind,
        location=Location(*at),
        module=module,
        qualname=qualname,
        signature=_signature_of(signature),
        decorators=tuple(decorators),
        guard=guard,
        variants=tuple(_variant_of(item) for item in variants),
        via=tuple(Location(*place) for place in via),
        inherited_from=inherited_from,
        bases=tuple(bases),
        fingerprint=fingerprint,
        value=value,
        is_async=is_async,
    )


def _variant_of(row: list[Any]) -> Variant:
    at, guard, signature, kind, resolved, fingerprint = row
    return Variant(Location(*at), guard, _signature_of(signature), kind, resolved, fingerprint)


def _signature_row(signature: Signature | None) -> list[Any] | None:
    if signature is None:
        return None
    return [[p.name, p.kind, p.has_default, p.default] for p in signature.parameters]


def _signature_of(row: list[Any] | None) -> Signature | None:
    return None if row is None else Signature(tuple(Parameter(*item) for item in row))

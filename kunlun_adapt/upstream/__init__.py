"""Obtain an SGLang release and resolve symbols in it, without importing it.

The names that read a release are loaded on first use: a server process only needs the lock.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from kunlun_adapt.upstream.errors import LockError, ReleaseError
from kunlun_adapt.upstream.facts import Facts
from kunlun_adapt.upstream.lock import (
    Lock,
    LockEntry,
    LockFacts,
    lock_release,
    parse_lock,
    read_lock,
    write_lock,
)
from kunlun_adapt.upstream.symbols import (
    Location,
    Missing,
    Parameter,
    Signature,
    Suggestion,
    Symbol,
    Variant,
)

if TYPE_CHECKING:
    from kunlun_adapt.upstream.fetch import default_cache_dir
    from kunlun_adapt.upstream.index import (
        CallForm,
        Definition,
        Import,
        Index,
        Reference,
        open_index,
    )
    from kunlun_adapt.upstream.release import Release, open_release
    from kunlun_adapt.upstream.resolve import Resolver

__all__ = [
    "CallForm",
    "Definition",
    "Facts",
    "Import",
    "Index",
    "Location",
    "Lock",
    "LockEntry",
    "LockError",
    "LockFacts",
    "Missing",
    "Parameter",
    "Reference",
    "Release",
    "ReleaseError",
    "Resolver",
    "Signature",
    "Suggestion",
    "Symbol",
    "Variant",
    "default_cache_dir",
    "lock_release",
    "open_index",
    "open_release",
    "parse_lock",
    "read_lock",
    "write_lock",
]

_ON_DEMAND = {
    "CallForm": "index",
    "Definition": "index",
    "Import": "index",
    "Index": "index",
    "Reference": "index",
    "Release": "release",
    "Resolver": "resolve",
    "default_cache_dir": "fetch",
    "open_index": "index",
    "open_release": "release",
}


def __getattr__(name: str) -> Any:
    if name not in _ON_DEMAND:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_ON_DEMAND[name]}"), name)

"""What this process did: the state of each binding and how often each tier served.

With `KUNLUN_ADAPT_RUN_DIR` set, the process keeps `<run dir>/<pid>.json` up to date.
"""

from __future__ import annotations

import atexit
import json
import logging
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from kunlun_adapt.runtime import roles

logger = logging.getLogger("kunlun_adapt")

RUN_DIR = "KUNLUN_ADAPT_RUN_DIR"
INTERVAL = 0.5
"""Seconds between two looks at whether the file is out of date."""

State = Literal["pending", "applied", "failed", "elsewhere"]


@dataclass(slots=True)
class Entry:
    """One binding in this process.

    `pending`: not due yet. `elsewhere`: nothing to do here, since the map gives it to other
    processes only, or the real thing is there and needs no stand-in; `detail` says which.
    """

    id: str
    required: bool
    state: State = "pending"
    detail: str = ""

    def fail(self, detail: str) -> None:
        """Record that the binding is not in effect, and why."""
        self.state, self.detail = "failed", detail


@dataclass(slots=True)
class Ledger:
    """Everything that this process records; `started` (UTC) tells one run from another."""

    release: str = ""
    profile: str = ""
    workspace: str = ""
    map: str = ""
    map_revision: str = ""
    unverified: bool = False
    refused: str = ""
    started: str = field(default_factory=lambda: time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()))
    entries: dict[str, Entry] = field(default_factory=dict)
    tallies: dict[str, tuple[tuple[str, ...], list[int]]] = field(default_factory=dict)
    fallbacks: dict[tuple[str, str], str] = field(default_factory=dict)


@dataclass(slots=True)
class _File:
    """The file in the run directory: what it holds, who may write it, whether it can be."""

    guard: threading.Lock = field(default_factory=threading.Lock)
    text: str = ""
    failing: bool = False
    started: bool = False


LEDGER = Ledger()
_settlers: list[Callable[[], None]] = []
_file = _File()


def tally(operator: str, tiers: tuple[str, ...]) -> list[int]:
    """Return the counters of an operator's tiers."""
    return LEDGER.tallies.setdefault(operator, (tiers, [0] * len(tiers)))[1]


def fallback(operator: str, tier: str, reason: str) -> None:
    """Record why a fallback tier served for the first time."""
    LEDGER.fallbacks.setdefault((operator, tier), reason)


def enter(id: str, required: bool) -> Entry:
    """Return the entry of a binding, made when it is new."""
    return LEDGER.entries.setdefault(id, Entry(id, required))


def settle_with(look: Callable[[], None]) -> None:
    """Have `look` called before each writing, to read back what was pending."""
    _settlers.append(look)


def snapshot() -> dict[str, object]:
    """Return the ledger as the JSON object that the run directory holds (schema 1)."""
    for look in _settlers:
        look()
    # `sorted` copies in one go: other threads go on adding to the dictionaries.
    entries = sorted(LEDGER.entries.values(), key=lambda e: e.id)
    tallies = sorted(LEDGER.tallies.items())
    fallbacks = sorted(LEDGER.fallbacks.items())
    return {
        "schema": 1,
        "process": roles.current(),
        "pid": os.getpid(),
        "parent": os.getppid(),
        "started": LEDGER.started,
        "release": LEDGER.release,
        "profile": LEDGER.profile,
        "simulator": LEDGER.profile == "simulator",
        "workspace": LEDGER.workspace,
        "map": LEDGER.map,
        "map_revision": LEDGER.map_revision,
        "unverified": LEDGER.unverified,
        "refused": LEDGER.refused,
        "bindings": [
            {"id": e.id, "state": e.state, "required": e.required, "detail": e.detail}
            for e in entries
        ],
        "operators": {
            name: dict(zip(tiers, counts, strict=True)) for name, (tiers, counts) in tallies
        },
        "fallbacks": [
            {"operator": operator, "tier": tier, "reason": reason}
            for (operator, tier), reason in fallbacks
        ],
    }


def write() -> None:
    """Bring the process's file in the run directory up to date, atomically.

    A disk that fails is logged once, until it works again; serving does not depend on it.
    """
    folder = os.environ.get(RUN_DIR)
    if not folder:
        return
    with _file.guard:
        try:
            text = json.dumps(snapshot(), indent=1)
            if text != _file.text:
                _put(Path(folder) / f"{os.getpid()}.json", text)
                _file.text = text
            _file.failing = False
        except OSError as error:
            if not _file.failing:
                logger.warning("the ledger cannot be written to %s: %s", folder, error)
            _file.failing = True


def _put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    half = path.with_suffix(".part")
    half.write_text(text, encoding="utf-8")
    half.replace(path)


def start_writer() -> None:
    """Keep the file up to date from a daemon thread; SGLang ends its processes with a kill."""
    folder = os.environ.get(RUN_DIR)
    if not folder or _file.started:
        return
    os.environ[RUN_DIR] = os.path.abspath(folder)  # the process, or a child, may change folders
    _file.started = True
    _start_thread()
    atexit.register(write)
    os.register_at_fork(after_in_child=_after_fork)


def _after_fork() -> None:
    """Begin a file of the child's own; what its parent counted is in the parent's."""
    global _file
    _file = _File(started=True)
    for _, counts in LEDGER.tallies.values():
        counts[:] = [0] * len(counts)
    LEDGER.fallbacks.clear()
    _start_thread()


def _start_thread() -> None:
    threading.Thread(target=_keep_writing, name="kunlun-adapt-ledger", daemon=True).start()


def _keep_writing() -> None:
    pause = threading.Event()
    while True:
        write()
        pause.wait(INTERVAL)

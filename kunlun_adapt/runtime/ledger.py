"""What this process did: the state of each binding and how often each tier served.

With `KUNLUN_ADAPT_RUN_DIR` set, the process keeps `<run dir>/<pid>.json` up to date.
"""

from __future__ import annotations

import atexit
import json
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from kunlun_adapt.runtime import roles

RUN_DIR = "KUNLUN_ADAPT_RUN_DIR"
INTERVAL = 0.5
"""Seconds between two looks at whether the file is out of date."""

State = Literal["pending", "applied", "failed", "elsewhere"]


@dataclass(slots=True)
class Entry:
    """One binding in this process. `elsewhere`: the map gives it to other processes only."""

    id: str
    required: bool
    state: State = "pending"
    detail: str = ""


@dataclass(slots=True)
class Ledger:
    """Everything that this process records."""

    release: str = ""
    profile: str = ""
    workspace: str = ""
    entries: dict[str, Entry] = field(default_factory=dict)
    tallies: dict[str, tuple[tuple[str, ...], list[int]]] = field(default_factory=dict)
    fallbacks: dict[tuple[str, str], str] = field(default_factory=dict)


LEDGER = Ledger()
_settlers: list[Callable[[], None]] = []
_written = ""


def tally(operator: str, tiers: tuple[str, ...]) -> list[int]:
    """Return the counters of an operator's tiers."""
    if operator not in LEDGER.tallies:
        LEDGER.tallies[operator] = (tiers, [0] * len(tiers))
    return LEDGER.tallies[operator][1]


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
    return {
        "schema": 1,
        "process": roles.current(),
        "pid": os.getpid(),
        "release": LEDGER.release,
        "profile": LEDGER.profile,
        "simulator": LEDGER.profile == "simulator",
        "workspace": LEDGER.workspace,
        "bindings": [
            {"id": e.id, "state": e.state, "required": e.required, "detail": e.detail}
            for e in sorted(LEDGER.entries.values(), key=lambda e: e.id)
        ],
        "operators": {
            name: dict(zip(tiers, counts, strict=True))
            for name, (tiers, counts) in sorted(LEDGER.tallies.items())
        },
        "fallbacks": [
            {"operator": operator, "tier": tier, "reason": reason}
            for (operator, tier), reason in sorted(LEDGER.fallbacks.items())
        ],
    }


def write() -> None:
    """Bring the process's file in the run directory up to date, atomically."""
    global _written
    folder = os.environ.get(RUN_DIR)
    if not folder:
        return
    text = json.dumps(snapshot(), indent=1)
    if text == _written:
        return
    path = Path(folder) / f"{os.getpid()}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    half = path.with_suffix(".part")
    half.write_text(text, encoding="utf-8")
    half.replace(path)
    _written = text


def start_writer() -> None:
    """Keep the file up to date from a daemon thread; SGLang ends its processes with a kill."""
    if not os.environ.get(RUN_DIR):
        return
    _start_thread()
    atexit.register(write)
    os.register_at_fork(after_in_child=_after_fork)


def _after_fork() -> None:
    global _written
    _written = ""
    _start_thread()


def _start_thread() -> None:
    threading.Thread(target=_keep_writing, name="kunlun-adapt-ledger", daemon=True).start()


def _keep_writing() -> None:
    pause = threading.Event()
    while True:
        write()
        pause.wait(INTERVAL)

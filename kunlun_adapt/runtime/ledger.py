"""What this process did: the state of each binding and how often each tier served.

With `KUNLUN_ADAPT_RUN_DIR` set, the process keeps `<run dir>/<pid>.json` up to date.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import logging
import os
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from kunlun_adapt.runtime import processes, roles
from kunlun_adapt.runtime.probe import SIMULATED

logger = logging.getLogger("kunlun_adapt")

RUN_DIR = "KUNLUN_ADAPT_RUN_DIR"
RUN = "KUNLUN_ADAPT_RUN"
"""What the first process of a run hands to those that it starts, to tell it from other runs."""
SCHEMA = 1
COUNTED = "eager calls and captures"
"""What is counted: a graph replay runs no Python."""
INTERVAL = 0.5
"""Seconds between two looks at whether the file is out of date."""


def stamp(seconds: float) -> str:
    """Spell a time in UTC, so that texts are in the order of the times."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def _now() -> str:
    return stamp(time.time())


State = Literal["pending", "applied", "failed", "missing", "elsewhere", "disabled"]


@dataclass(slots=True)
class Entry:
    """One binding in this process.

    `pending`: not due yet. `missing`: due, and nobody has taken it up. `elsewhere`: nothing to do
    here, since the map gives it to other processes only, or the real thing is there and needs no
    stand-in; `detail` says which. `disabled`: switched off by the user, and so in effect nowhere,
    required or not. `kept` says why it cannot be switched off, where it cannot; `member` names the
    platform's member that serves it.
    """

    id: str
    required: bool
    state: State = "pending"
    detail: str = ""
    kept: str = ""
    member: str = ""

    def fail(self, detail: str) -> None:
        """Record that the binding is not in effect, and why."""
        self.state, self.detail = "failed", detail


Reason: TypeAlias = tuple[Any, ...]
"""Why a call fell back: the operator, the tier, and the form of each argument."""


@dataclass(slots=True)
class Fallback:
    """Calls of a fallback tier for one reason, and the first of them: arguments and Python stack.

    `why` is what the recipe says of the tier, and `at` where it says so. `refused` counts the calls
    that ended in an error instead.
    """

    operator: str
    tier: str
    reason: str
    call: str = ""
    why: str = ""
    at: str = ""
    stack: tuple[str, ...] = ()
    calls: int = 0
    refused: int = 0


@dataclass(slots=True)
class Ledger:
    """Everything that this process records; `started` is UTC.

    `planned` and `excluded` count the bindings that are not for this release and profile, and
    `chosen` holds what was decided once, each with why.
    """

    release: str = ""
    profile: str = ""
    workspace: str = ""
    map: str = ""
    map_revision: str = ""
    unverified: bool = False
    refused: str = ""
    planned: int = 0
    excluded: int = 0
    started: str = field(default_factory=_now)
    entries: dict[str, Entry] = field(default_factory=dict)
    tallies: dict[str, tuple[tuple[str, ...], list[int]]] = field(default_factory=dict)
    fallbacks: dict[Reason, Fallback] = field(default_factory=dict)
    chosen: dict[str, tuple[str, str]] = field(default_factory=dict)


@dataclass(slots=True)
class _File:
    """The file in the run directory: what it holds, who may write it, whether it can be.

    `born` and `host` tell this process from a later one with its number.
    """

    guard: threading.Lock = field(default_factory=threading.Lock)
    text: str = ""
    failing: bool = False
    started: bool = False
    ended: bool = False
    born: int | None = field(default_factory=processes.birth)
    host: str = field(default_factory=processes.host)


LEDGER = Ledger()
_settlers: list[Callable[[], None]] = []
_file = _File()


def tally(operator: str, tiers: tuple[str, ...]) -> list[int]:
    """Return the counters of an operator's tiers."""
    return LEDGER.tallies.setdefault(operator, (tiers, [0] * len(tiers)))[1]


def choose(what: str, value: str, why: str) -> None:
    """Record what was decided once in this process."""
    LEDGER.chosen[what] = (value, why)


def enter(id: str, required: bool) -> Entry:
    """Return the entry of a binding, made when it is new."""
    return LEDGER.entries.setdefault(id, Entry(id, required))


def for_only(processes: tuple[str, ...]) -> str:
    """Return the words for a binding that the map gives to these processes."""
    return f"for {', '.join(processes)} only"


def settle_with(look: Callable[[], None]) -> None:
    """Have `look` called before each writing, to read back what was pending."""
    _settlers.append(look)


def settle() -> None:
    """Read back what can be by now."""
    for look in _settlers:
        look()


def snapshot() -> dict[str, object]:
    """Return the ledger as the JSON object that the run directory holds (schema 1).

    Raises SystemExit where a required binding is found not to be in effect any more.
    """
    settle()
    return _body()


def _body() -> dict[str, object]:
    # `sorted` copies in one go: other threads go on adding to the dictionaries.
    entries = sorted(LEDGER.entries.values(), key=lambda e: e.id)
    tallies = sorted(LEDGER.tallies.items())
    known = list(LEDGER.fallbacks.values())
    fallbacks = sorted(known, key=lambda f: (f.operator, f.tier, f.reason))
    return {
        "schema": SCHEMA,
        "run": os.environ.get(RUN, ""),
        "process": roles.current(),
        "ranks": roles.ranks(),
        "pid": os.getpid(),
        "parent": os.getppid(),
        "born": _file.born,
        "host": _file.host,
        "ended": _file.ended,
        "started": LEDGER.started,
        "release": LEDGER.release,
        "profile": LEDGER.profile,
        "simulator": LEDGER.profile in SIMULATED.values(),
        "simulator_faults": simulator_faults(),
        "workspace": LEDGER.workspace,
        "map": LEDGER.map,
        "map_revision": LEDGER.map_revision,
        "unverified": LEDGER.unverified,
        "refused": LEDGER.refused,
        "bindings": [
            {
                "id": e.id,
                "state": e.state,
                "required": e.required,
                "detail": e.detail,
                "kept": e.kept,
                "member": e.member,
            }
            for e in entries
        ],
        "planned": LEDGER.planned,
        "excluded": LEDGER.excluded,
        "chosen": [
            {"what": what, "value": value, "why": why}
            for what, (value, why) in sorted(LEDGER.chosen.items())
        ],
        "counted": COUNTED,
        "operators": {
            name: dict(zip(tiers, counts, strict=True)) for name, (tiers, counts) in tallies
        },
        "fallbacks": [
            {
                "operator": first.operator,
                "tier": first.tier,
                "reason": first.reason,
                "calls": first.calls,
                "refused": first.refused,
                "call": first.call,
                "why": first.why,
                "at": first.at,
                "stack": list(first.stack),
            }
            for first in fallbacks
        ],
    }


def simulator_faults() -> list[dict[str, object]]:
    """Return what the simulated device was asked to do wrong, each with how often it did."""
    # On a card the module is never imported.
    faults = sys.modules.get("kunlun_adapt.simulator.faults")
    return list(faults.active()) if faults and LEDGER.profile in SIMULATED.values() else []


def write() -> None:
    """Bring the process's file in the run directory up to date, atomically.

    A disk that fails, or is full, is logged once, until it works again; the last whole report
    stays, and serving does not depend on it. Raises SystemExit where a required binding is found
    not to be in effect any more.
    """
    folder = os.environ.get(RUN_DIR)
    if not folder:
        return
    settle()  # before the guard: who refuses writes, too
    with _file.guard:
        try:
            text = json.dumps(_body(), indent=1)
            if text != _file.text:
                _put(Path(folder) / f"{os.getpid()}.json", text)
                _file.text = text
            _file.failing = False
        except OSError as error:
            if not _file.failing:
                logger.warning("the ledger cannot be written to %s: %s", folder, error)
            _file.failing = True


def _put(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    half = path.with_suffix(".part")
    try:
        half.write_text(text, encoding="utf-8")
        half.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            half.unlink()
        raise


def start_writer() -> None:
    """Keep the file up to date from a daemon thread; SGLang ends its processes with a kill."""
    folder = os.environ.get(RUN_DIR)
    if not folder or _file.started:
        return
    os.environ[RUN_DIR] = os.path.abspath(folder)  # the process, or a child, may change folders
    os.environ.setdefault(RUN, f"{LEDGER.started} {os.getpid()}")
    _file.started = True
    _start_thread()
    atexit.register(_end)
    os.register_at_fork(after_in_child=_after_fork)


def _end() -> None:
    """Write the last state, and that it is the last."""
    _file.ended = True
    with contextlib.suppress(SystemExit):  # the process ends already
        write()


def _after_fork() -> None:
    """Begin a file of the child's own; what its parent counted is in the parent's."""
    global _file
    _file = _File(started=True)
    LEDGER.started = _now()
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

"""A run read back from its folder: the ledgers of its processes, and what they say together."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from kunlun_adapt.runtime import processes
from kunlun_adapt.runtime.ledger import SCHEMA, stamp
from kunlun_adapt.runtime.shape import LEDGER, check

ProcessState = Literal["running", "ended", "gone", "zombie", "unknown"]

OWN_TOOLS = ("multiprocessing.resource_tracker", "multiprocessing.forkserver")
"""What Python itself starts beside the processes of a program."""
MATTERS = ("applied", "failed", "missing")
"""States of a binding in one process by which another that has not applied it lacks it."""
NEVER = "this process never took it up"
HALF = (
    "half written: its process was killed while it wrote, unless it is one of another container "
    "that is at it now"
)


@dataclass(frozen=True, slots=True)
class Process:
    """One process of a run, as its ledger tells it.

    `ended` said that it ends; `gone` ended without a word (SGLang ends most of its processes by a
    kill); `unknown` belongs to another machine or container.
    """

    ledger: Mapping[str, Any]
    file: str
    state: ProcessState
    bindings: Mapping[str, Mapping[str, Any]]

    @property
    def pid(self) -> int:
        return int(self.ledger["pid"])

    @property
    def name(self) -> str:
        return str(self.ledger["process"])

    @property
    def label(self) -> str:
        """The process with its ranks, as people tell it from its like."""
        ranks = (f"{group}{rank}" for group, rank in self.ledger["ranks"].items())
        return " ".join((self.name, *ranks))

    def count(self, state: str) -> int:
        return sum(b["state"] == state for b in self.ledger["bindings"])


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A file of the run that is no ledger, and why."""

    file: str
    why: str


@dataclass(frozen=True, slots=True)
class Unseen:
    """A process that is known only from outside: it keeps no ledger in this run."""

    pid: int
    what: str


@dataclass(frozen=True, slots=True)
class Lack:
    """What one process lacks of a binding that others have, or that it must have."""

    binding: str
    process: str
    pid: int
    state: str
    required: bool
    detail: str


@dataclass(frozen=True, slots=True)
class Run:
    """All that a run's folder holds; `earlier` counts the ledgers of older runs, left out."""

    folder: Path
    processes: tuple[Process, ...]
    unreadable: tuple[Unreadable, ...] = ()
    unseen: tuple[Unseen, ...] = ()
    earlier: int = 0
    differing: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def states(self, id: str) -> dict[int, str]:
        """Return a binding's state in each process, by its number; "missing" where it has none."""
        return {
            p.pid: p.bindings[id]["state"] if id in p.bindings else "missing"
            for p in self.processes
        }

    def lacks(self) -> list[Lack]:
        """Return what is not applied in a process: failed, missing, or so or applied in another.

        What a process leaves to others by the map, and what the user switched off, it does not
        lack.
        """
        found = []
        for id in self.ids():
            held = [p.bindings.get(id) for p in self.processes]
            matters = any(b is not None and b["state"] in MATTERS for b in held)
            for process, binding in zip(self.processes, held, strict=True):
                state = "missing" if binding is None else binding["state"]
                if not matters or state in ("applied", "elsewhere", "disabled"):
                    continue
                required = any(b is not None and b["required"] for b in held)
                detail = NEVER if binding is None else binding["detail"]
                found.append(Lack(id, process.name, process.pid, state, required, detail))
        return found

    def nowhere(self) -> dict[str, str]:
        """Return the bindings that no process has applied, failed or missed, each with why."""
        found = {}
        for id in self.ids():
            held = [p.bindings[id] for p in self.processes if id in p.bindings]
            states = {b["state"] for b in held}
            if states.isdisjoint({*MATTERS, "disabled"}):
                found[id] = "; ".join(dict.fromkeys(b["detail"] or b["state"] for b in held))
        return found

    def disabled(self) -> list[str]:
        """Return the bindings that the user switched off in some process."""
        return [
            id
            for id in self.ids()
            if any(
                p.bindings[id]["state"] == "disabled" for p in self.processes if id in p.bindings
            )
        ]

    def ids(self) -> list[str]:
        """Return the ids of all bindings that some process knows."""
        return sorted({b["id"] for p in self.processes for b in p.ledger["bindings"]})

    def operators(self) -> dict[str, dict[str, int]]:
        """Return the calls of each tier, all processes together."""
        found: dict[str, dict[str, int]] = {}
        for process in self.processes:
            for operator, tiers in process.ledger["operators"].items():
                total = found.setdefault(operator, {})
                for tier, calls in tiers.items():
                    total[tier] = total.get(tier, 0) + calls
        return dict(sorted(found.items()))

    def fallbacks(self) -> list[dict[str, Any]]:
        """Return each fallback by operator, tier and reason, with the processes that had it."""
        found: dict[tuple[str, str, str], dict[str, Any]] = {}
        for process in self.processes:
            for one in process.ledger["fallbacks"]:
                key = (one["operator"], one["tier"], one["reason"])
                total = found.setdefault(key, {**one, "calls": 0, "refused": 0, "processes": []})
                total["calls"] += one["calls"]
                total["refused"] += one["refused"]
                total["processes"].append({"process": process.name, "pid": process.pid})
        return [found[key] for key in sorted(found)]

    def wrong(self) -> bool:
        """Tell whether a process was refused, lacks what it must have, or cannot be read."""
        return (
            bool(self.unreadable)
            or any(p.ledger["refused"] for p in self.processes)
            or any(lack.required and lack.state in ("failed", "missing") for lack in self.lacks())
        )


def read_run(folder: Path) -> Run:
    """Read the newest run in a folder, and older ones that still have a process running.

    Raises OSError where the folder cannot be read.
    """
    ledgers: list[Process] = []
    unreadable = []
    halves = []
    for path in sorted(folder.iterdir()):
        if not path.stem.isdigit() or path.suffix not in (".json", ".part"):
            continue
        try:
            if path.suffix == ".part":
                halves.append((path, path.stat().st_mtime))
                continue
            body = _read(path)
        except FileNotFoundError:  # replaced or removed while the folder was read
            continue
        except (OSError, ValueError, RecursionError) as error:
            unreadable.append(Unreadable(path.name, _in_words(error)))
            continue
        bindings = {b["id"]: b for b in body["bindings"]}
        ledgers.append(Process(body, path.name, _state(body), bindings))
    shown = _current(ledgers)
    elsewhere = {p.pid for p in ledgers if p.state == "unknown"}
    began = min((p.ledger["started"] for p in shown), default="")
    for path, written in halves:
        # One of an earlier run says nothing of this one.
        if int(path.stem) not in elsewhere and stamp(written) >= began and _is_left_half(path):
            unreadable.append(Unreadable(path.name, HALF))
    return Run(
        folder,
        tuple(sorted(shown, key=lambda p: (p.ledger["started"], p.pid))),
        tuple(unreadable),
        tuple(_unseen(shown)),
        len(ledgers) - len(shown),
        _differing(shown),
    )


def _read(path: Path) -> Mapping[str, Any]:
    """Return a ledger. Raises ValueError where it is none of ours."""
    body = json.loads(path.read_bytes())
    if not isinstance(body, dict):
        raise ValueError("it is no ledger")
    if body.get("schema") != SCHEMA:
        raise ValueError(f"its schema is {body.get('schema')!r}, and this version reads {SCHEMA}")
    check(body, LEDGER)
    return body


def _is_left_half(path: Path) -> bool:
    """Tell whether nobody here is at writing it."""
    return path.exists() and processes.look(int(path.stem)) is None


def _state(body: Mapping[str, Any]) -> ProcessState:
    life = processes.life(int(body["pid"]), body.get("born"), str(body["host"]))
    return "ended" if body["ended"] and life == "gone" else life


def _current(ledgers: Iterable[Process]) -> list[Process]:
    """Return the processes of the newest run, and of those of which one still runs."""
    runs: dict[str, list[Process]] = {}
    for process in ledgers:
        runs.setdefault(process.ledger["run"], []).append(process)
    newest = max((p.ledger["started"] for r in runs.values() for p in r), default="")
    return [
        p
        for run in runs.values()
        for p in run
        if any(q.state in ("running", "unknown") or q.ledger["started"] == newest for q in run)
    ]


def _unseen(shown: Iterable[Process]) -> list[Unseen]:
    """Return the parents and the running children that keep no ledger in this run.

    The first process of a run was started by a shell or a service: its parent is not looked for.
    """
    known = {p.pid: p for p in shown}
    found: dict[int, Unseen] = {}
    for process in known.values():
        parent = int(process.ledger["parent"])
        if process.name != "main" and parent > 1 and parent not in known:
            found[parent] = Unseen(parent, f"parent of {process.name} {process.pid}")
    here = {pid for pid, p in known.items() if p.state == "running"}
    for child in processes.children(here):
        command = processes.command(child.pid)
        if child.pid not in known and not any(tool in command for tool in OWN_TOOLS):
            who = f"child of {known[child.parent].name} {child.parent}"
            found[child.pid] = Unseen(child.pid, f"{who}: {command[:120] or 'no command line'}")
    return sorted(found.values(), key=lambda u: u.pid)


def _differing(shown: Iterable[Process]) -> dict[str, tuple[str, ...]]:
    """Return what should be one in a run and is not, with its values."""
    found = {}
    for key in ("release", "profile", "map", "map_revision", "workspace"):
        values = sorted({str(p.ledger[key]) for p in shown})
        if len(values) > 1:
            found[key] = tuple(values)
    return found


def _in_words(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"it is cut off or no JSON: {error.msg} at line {error.lineno}"
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return str(error) or type(error).__name__

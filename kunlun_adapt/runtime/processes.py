"""Which processes live: what tells one from another that has its number later."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Life = Literal["running", "zombie", "gone", "unknown"]

_PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Seen:
    """A process as the system shows it; `born` is its start in clock ticks since the boot."""

    pid: int
    parent: int
    state: str
    born: int


def look(pid: int) -> Seen | None:
    """Return what the system shows of a process, or None where it shows nothing."""
    try:
        text = (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
        # The name, in brackets, may hold blanks and brackets itself.
        fields = text.rpartition(")")[2].split()
        return Seen(pid, int(fields[1]), fields[0], int(fields[19]))
    except (OSError, ValueError, IndexError):
        return None


def birth() -> int | None:
    """Return this process's own start in ticks, where the system tells."""
    seen = look(os.getpid())
    return seen.born if seen else None


def host() -> str:
    """Return what tells this system's process numbers from another's: its name and its boot."""
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        space = os.readlink(_PROC / "self/ns/pid")
    except OSError:
        return platform.node()
    return f"{platform.node()} {boot} {space}"


def life(pid: int, born: int | None, where: str) -> Life:
    """Tell whether the process that wrote `pid`, `born` and `where` of itself still runs.

    `unknown` where it belongs to another system or container.
    """
    if where != host():
        return "unknown"
    seen = look(pid)
    if seen is None:
        return "gone" if _PROC.joinpath("self").exists() else _signalled(pid)
    if born is not None and seen.born != born:
        return "gone"
    return "zombie" if seen.state == "Z" else "running"


def children(pids: set[int]) -> list[Seen]:
    """Return the running processes that some of `pids` started, by number."""
    try:
        numbers = [int(p) for p in os.listdir(_PROC) if p.isdigit()]
    except OSError:
        return []
    found = (look(pid) for pid in sorted(numbers))
    return [s for s in found if s and s.parent in pids and s.state != "Z"]


def command(pid: int) -> str:
    """Return a process's command line, or "" where it cannot be read."""
    try:
        words = (_PROC / str(pid) / "cmdline").read_bytes().split(b"\0")
    except OSError:
        return ""
    return b" ".join(words).decode("utf-8", errors="replace").strip()


def _signalled(pid: int) -> Life:
    """Tell by a signal that does nothing, where the system has no /proc."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return "gone"
    except OSError:  # it is another user's
        return "running"
    return "running"

"""Which of SGLang's processes this one is."""

from __future__ import annotations

import multiprocessing
import os
import re
import sys
from collections.abc import Callable, Mapping
from multiprocessing.process import BaseProcess
from typing import Any

OTHER = "other"
STARTING = "starting"
UNNAMED = (OTHER, STARTING)
"""What is said of a process while nobody can tell what it runs: it gets every hook."""

# What SGLang writes behind the name of a scheduler: _DP0_PP1_ATTN_CP0_TP1.
_RANK = re.compile(r"_([A-Z][A-Z_]*?)(\d+)(?=_|\Z)")

_processes: dict[str, str] = {}
_born = (os.getpid(), multiprocessing.current_process())
_entered: tuple[int, str] | None = None


def know(processes: Mapping[str, str]) -> None:
    """Take the map's process names, by the name of the upstream function that a process runs."""
    _processes.clear()
    _processes.update(processes)


def enter(name: str) -> None:
    """State which process this is, where its own function says so."""
    global _entered
    _entered = (os.getpid(), name)


def current() -> str:
    """Return this process's name: "main", that of the function that it runs, or "other".

    A spawned child imports upstream while it still unpickles what it is to run; until then it is
    "starting", so ask when the name is needed and keep no copy. A child of a bare `os.fork()` is
    "other", whatever its parent was.
    """
    if _entered is not None and _entered[0] == os.getpid():
        return _entered[1]
    process = multiprocessing.current_process()
    if getattr(process, "_inheriting", False):
        return STARTING
    if os.getpid() != _born[0] and process is _born[1]:
        return OTHER
    if multiprocessing.parent_process() is None:
        return "main"
    return next((name for f in _ran(process) if (name := _processes.get(_name(f)))), OTHER)


def running() -> Any:
    """Return the function that gave this process its name, None where none did."""
    ran = _ran(multiprocessing.current_process())
    return next((function for function in ran if _name(function) in _processes), None)


def functions(role: str) -> list[str]:
    """Return the names of the upstream functions that a process of this name runs."""
    return [function for function, name in _processes.items() if name == role]


def ranks() -> dict[str, int]:
    """Return this process's ranks (TP, PP, DP and so on), where SGLang has put them in its title.

    It does so for the groups that have more than one rank.
    """
    titles = sys.modules.get("setproctitle")
    title = str(titles.getproctitle()) if titles is not None else ""
    if not title.startswith("sglang::"):
        return {}
    return {name: int(rank) for name, rank in _RANK.findall(title)}


def when_known(act: Callable[[], None]) -> None:
    """Call `act` now, or in a spawned child that is still unpickled right before what it runs."""
    if current() != STARTING:
        act()
        return
    plain = BaseProcess.run

    def run(process: BaseProcess) -> None:
        BaseProcess.run = plain  # type: ignore[method-assign]
        act()
        plain(process)

    # Of children that were forked multiprocessing tells, of spawned ones it does not.
    BaseProcess.run = run  # type: ignore[method-assign, assignment]


def _ran(process: Any) -> list[Any]:
    """Return what a process runs, and what that is handed: it may make the process what it is."""
    return [getattr(process, "_target", None), *getattr(process, "_args", ())[:1]]


def _name(function: Any) -> str:
    """Return a function's name; one that is wrapped or partly applied leads to its own."""
    return str(getattr(getattr(function, "func", function), "__name__", ""))


def known() -> bool:
    """Tell whether this is one of the processes that the map names, or the main one."""
    return current() not in UNNAMED

"""Which of SGLang's processes this one is."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Mapping

OTHER = "other"
STARTING = "starting"

_processes: dict[str, str] = {}
_born = (os.getpid(), multiprocessing.current_process())


def know(processes: Mapping[str, str]) -> None:
    """Take the map's process names, by the name of the upstream function that a process runs."""
    _processes.clear()
    _processes.update(processes)


def current() -> str:
    """Return this process's name: "main", that of the function that it runs, or "other".

    A spawned child imports upstream while it still unpickles what it is to run; until then it is
    "starting", so ask when the name is needed and keep no copy. A child of a bare `os.fork()` is
    "other", whatever its parent was.
    """
    process = multiprocessing.current_process()
    if getattr(process, "_inheriting", False):
        return STARTING
    if os.getpid() != _born[0] and process is _born[1]:
        return OTHER
    if multiprocessing.parent_process() is None:
        return "main"
    # A function that is wrapped or partly applied still carries, or leads to, its own name.
    target = getattr(process, "_target", None)
    target = getattr(target, "func", target)
    return _processes.get(getattr(target, "__name__", ""), OTHER)


def known() -> bool:
    """Tell whether this is one of the processes that the map names, or the main one."""
    return current() not in (OTHER, STARTING)

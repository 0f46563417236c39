"""Which of SGLang's processes this one is."""

from __future__ import annotations

import multiprocessing
from collections.abc import Mapping

_processes: dict[str, str] = {}


def know(processes: Mapping[str, str]) -> None:
    """Take the map's process names, by the name of the upstream function that a process runs."""
    _processes.update(processes)


def current() -> str:
    """Return this process's name: "main", that of the function that it runs, or "other".

    A spawned child imports upstream while it still unpickles what it is to run; until then it is
    "starting", so ask when the name is needed and keep no copy.
    """
    process = multiprocessing.current_process()
    if getattr(process, "_inheriting", False):
        return "starting"
    if multiprocessing.parent_process() is None:
        return "main"
    target = getattr(process, "_target", None)
    return _processes.get(getattr(target, "__name__", ""), "other")

"""Which of SGLang's processes this one is."""

from __future__ import annotations

import multiprocessing
from collections.abc import Mapping


def role(processes: Mapping[str, str]) -> str:
    """Return the process's name in the map: "main", or that of the function that it runs.

    `processes` maps the name of an upstream entry function to the map's process name. A child
    that runs something else is called "other".
    """
    if multiprocessing.parent_process() is None:
        return "main"
    target = getattr(multiprocessing.current_process(), "_target", None)
    return processes.get(getattr(target, "__name__", ""), "other")

"""The processes in which SGLang loads no plugins: our hooks are registered as they begin."""

from __future__ import annotations

import functools
import multiprocessing
import sys
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from kunlun_adapt.runtime import roles
from kunlun_adapt.runtime.imports import half_imported, when_imported
from kunlun_adapt.runtime.stop import Failure, stop


def watch_entries(entries: Mapping[str, tuple[str, str]], begin: Callable[[], None]) -> None:
    """Have `begin` called in each of these processes, before the function that it runs.

    `entries` holds the module and the name of that function by the process's name.
    """
    for process, (module, name) in entries.items():
        found = sys.modules.get(module)
        # A parent hands the function to its child by name, and must not hold two of that name. The
        # child imports the module anew, and after us.
        late = found is not None and not half_imported(found)
        if not late or multiprocessing.parent_process() is not None:
            when_imported(module, functools.partial(_put, process, name, begin))


def _put(process: str, name: str, begin: Callable[[], None], upstream: ModuleType) -> None:
    original = getattr(upstream, name, None)
    if not callable(original):
        raise stop(
            f"our hooks cannot reach the {process} process",
            [Failure("kunlun-adapt", f"{upstream.__name__}.{name} is no function")],
            f"name in `interface`, as process.{process}, what that process runs",
        )

    @functools.wraps(original)
    def entered(*args: Any, **kwargs: Any) -> Any:
        roles.enter(process)
        begin()
        return original(*args, **kwargs)

    setattr(upstream, name, entered)

"""The hooks that are due in this process, known before anybody registers them.

SGLang decides when its plugins are loaded. Where it never does, our hooks are missing, and nothing
else of ours runs that could notice.
"""

from __future__ import annotations

import dis
import logging
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import FrameType

from kunlun_adapt.runtime import ledger, roles
from kunlun_adapt.runtime.stop import refuse_failures

logger = logging.getLogger("kunlun_adapt")

LOADS = "load_plugins"
NOT_YET = "SGLang has not loaded its plugins yet"
UNNAMED = "SGLang loads no plugins in processes that the map does not name"


@dataclass(frozen=True, slots=True)
class _Due:
    entry: ledger.Entry
    process: tuple[str, ...]


class Owed:
    """Takes the calls of the generated `hooks.install` at the early door, and registers nothing."""

    def __init__(self) -> None:
        self._due: list[_Due] = []
        self._late = False

    def __getattr__(self, how: str) -> Callable[..., None]:
        def take(
            id: str, target: str, *, required: bool, process: tuple[str, ...] = (), **_: object
        ) -> None:
            entry = ledger.enter(id, required)
            entry.detail = NOT_YET
            self._due.append(_Due(entry, process))

        return take

    def missing(self) -> list[ledger.Entry]:
        """Return the hooks for this process that are not in effect and have not failed."""
        role, known = roles.current(), roles.known()
        return [
            due.entry
            for due in self._due
            # What is left to other processes was so in the one that this was forked from.
            if due.entry.state in ("pending", "elsewhere", "missing")
            and (role in due.process if known and due.process else not due.process)
        ]

    def overdue(self, waited: float) -> None:
        """Warn of the hooks that nobody has registered; end the process where nobody will.

        A process that the map does not name is only warned of: SGLang gives it no plugins.
        """
        missing = self.missing()
        never = _never()
        why = never or (
            f"{NOT_YET}, {waited:g} s after the process began" if roles.known() else UNNAMED
        )
        for entry in missing:
            if never:
                entry.fail(_forked() if entry.state == "elsewhere" else never)
            else:
                entry.state, entry.detail = "missing" if roles.known() else "pending", why
        for due in self._due:
            if due.entry.state == "pending" and roles.known():  # not for this process
                due.entry.state, due.entry.detail = "elsewhere", ledger.for_only(due.process)
        if not missing:
            return
        self._late = True
        logger.warning(
            "%d hook(s) are not in effect in the %s process: %s: %s",
            len(missing),
            roles.current(),
            why,
            ", ".join(e.id for e in missing),
        )
        if never:
            refuse_failures()

    def paid(self) -> None:
        """Say that hooks which were missed have come, once."""
        if self._late:
            self._late = False
            logger.warning("the hooks of the %s process are in effect now", roles.current())


def still_starting() -> bool:
    """Tell whether this process is being unpickled, is importing, or is loading plugins."""
    return roles.current() == roles.STARTING or any(
        frame.f_code.co_filename.startswith("<frozen importlib")
        or (frame.f_code.co_name == LOADS and _upstreams(frame))
        for frame in _main_stack()
    )


def _never() -> str:
    """Return why nobody will register hooks here, "" where that is not certain.

    It is where the function that the process runs has passed the place at which it loads plugins,
    or has none.
    """
    names = roles.functions(roles.current())
    for frame in _main_stack():
        code = frame.f_code
        if code.co_name not in names or not _upstreams(frame):
            continue
        places = [i.offset for i in dis.get_instructions(code) if i.argval == LOADS]
        if any(offset > frame.f_lasti for offset in places):
            return ""
        if places:
            return f"{code.co_name} has loaded SGLang's plugins, and our entry point was not called"
        return (
            f"{code.co_name} never calls {LOADS}(): let process.{roles.current()} in `interface` "
            "say `loads_plugins: false`"
        )
    return ""


def _forked() -> str:
    return f"start the {roles.current()} by spawn, as SGLang does: it was forked from another one"


def _main_stack() -> Iterator[FrameType]:
    frame = sys._current_frames().get(threading.main_thread().ident or 0)
    while frame is not None:
        yield frame
        frame = frame.f_back


def _upstreams(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0] == "sglang"

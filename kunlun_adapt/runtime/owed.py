"""The hooks that are due in this process, known before anybody registers them.

SGLang decides when its plugins are loaded. Where it never does, our hooks are missing, and nothing
else of ours runs that could notice.
"""

from __future__ import annotations

import dis
import inspect
import logging
import sys
import threading
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import partial
from multiprocessing.util import register_after_fork
from types import CodeType, FrameType, FunctionType, MethodType
from typing import Any

from kunlun_adapt.runtime import ledger, roles
from kunlun_adapt.runtime.stop import refuse_failures

logger = logging.getLogger("kunlun_adapt")

LOADS = "load_plugins"
STEPS = 3
"""How far calls are followed from the function that a process runs."""
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
        self._spared: Collection[str] = ()

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

    def watch_births(self, spared: Collection[str]) -> None:
        """Have `begun` called in this process and in its forks, before their functions run.

        In the processes `spared` SGLang is known to load no plugins, and we do without.
        """
        self._spared = spared
        register_after_fork(self, Owed.begun)
        roles.when_known(self.begun)

    def begun(self) -> None:
        """End a process that runs a function of SGLang's which never loads plugins."""
        if not roles.known() or roles.current() in self._spared:
            return
        function = _plain(roles.running())
        if function is not None and _of_sglang(function.__globals__) and not _may_load(function):
            self._settle(_never_calls(function.__name__), certain=True)

    def overdue(self, waited: float) -> None:
        """Warn of the hooks that nobody has registered; end the process where nobody will.

        A process that the map does not name is only warned of: SGLang gives it no plugins.
        """
        never = _never()
        late = f"{NOT_YET}, {waited:g} s after the process began" if roles.known() else UNNAMED
        self._settle(never or late, certain=bool(never))

    def _settle(self, why: str, *, certain: bool) -> None:
        missing = self.missing()
        for entry in missing:
            if certain:
                entry.fail(_forked() if entry.state == "elsewhere" else why)
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
        if certain:
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
        return _never_calls(code.co_name)
    return ""


def _never_calls(function: str) -> str:
    return (
        f"{function} never calls {LOADS}(): let process.{roles.current()} in `interface` "
        "say `loads_plugins: false`"
    )


def _may_load(start: FunctionType) -> bool:
    """Tell whether a function, or what it calls in its own module, names `load_plugins`."""
    seen: set[CodeType] = set()
    level = [start]
    for _ in range(STEPS):
        following: list[FunctionType] = []
        for function in level:
            seen.add(function.__code__)
            named = set(_names(function.__code__))
            if LOADS in named:
                return True
            for name in named:
                called = function.__globals__.get(name)
                inner = [*vars(called).values()] if isinstance(called, type) else [called]
                following += [
                    plain
                    for one in inner
                    if (plain := _plain(one)) is not None
                    and plain.__module__ == start.__module__
                    and plain.__code__ not in seen
                ]
        level = following
    return False


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _plain(function: Any) -> FunctionType | None:
    """Return the function behind decorators and what is partly applied, if there is one."""
    while isinstance(function, classmethod | staticmethod | MethodType | partial):
        function = function.func if isinstance(function, partial) else function.__func__
    if not isinstance(function, FunctionType):
        return None
    found = inspect.unwrap(function)
    return found if isinstance(found, FunctionType) else None


def _forked() -> str:
    return f"start the {roles.current()} by spawn, as SGLang does: it was forked from another one"


def _main_stack() -> Iterator[FrameType]:
    frame = sys._current_frames().get(threading.main_thread().ident or 0)
    while frame is not None:
        yield frame
        frame = frame.f_back


def _upstreams(frame: FrameType) -> bool:
    return _of_sglang(frame.f_globals)


def _of_sglang(module: dict[str, Any]) -> bool:
    return str(module.get("__name__", "")).partition(".")[0] == "sglang"

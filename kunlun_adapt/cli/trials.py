"""One run of a command with some bindings switched off, and what it left behind."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from kunlun_adapt.cli.streams import harmless
from kunlun_adapt.diagnostics import AdaptError
from kunlun_adapt.runtime.disabled import DISABLE
from kunlun_adapt.runtime.ledger import RUN, RUN_DIR
from kunlun_adapt.runtime.runs import Run, read_run

Outcome = Literal["passes", "fails", "times out"]

GRACE = 10.0
"""Seconds between asking a command that takes too long to end, and ending it."""
HASTE = 2.0
"""The same where this process is told to end; whoever told it may not wait for long."""
ENDING = (signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True, slots=True)
class Trial:
    """One run: what was off, how it ended, and where its output and ledgers lie."""

    number: int
    off: tuple[str, ...]
    outcome: Outcome
    code: int | None
    seconds: float
    log: Path
    run: Run


@dataclass(slots=True)
class Trials:
    """Runs one command again and again; each gets a folder of its own for its ledgers.

    `settings` are environment variables for all of them.
    """

    command: Sequence[str]
    folder: Path
    timeout: float | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    done: list[Trial] = field(default_factory=list)

    def run(self, off: Iterable[str]) -> Trial:
        """Run the command with these bindings switched off, besides those that are already.

        Raises AdaptError where the bindings cannot be switched off, and OSError where the command
        cannot be started.
        """
        number = len(self.done) + 1
        ledgers = self.folder / str(number)
        ledgers.mkdir()
        log = self.folder / f"{number}.log"
        ids = tuple(off)
        given = [os.environ[DISABLE]] if os.environ.get(DISABLE) else []
        own = {RUN_DIR: str(ledgers), DISABLE: ",".join([*given, *ids])}
        environment = {**os.environ, **self.settings, **own}
        environment.pop(RUN, None)
        began = time.monotonic()
        code = self._end_of(environment, log)
        seconds = time.monotonic() - began
        outcome: Outcome = "times out" if code is None else "fails" if code else "passes"
        trial = Trial(number, ids, outcome, code, seconds, log, read_run(ledgers))
        self.done.append(trial)
        for process in trial.run.processes:
            if DISABLE in process.ledger["refused"]:
                why = harmless(process.ledger["refused"])
                raise AdaptError(f"the start was refused: {why}", None)
        return trial

    def _end_of(self, environment: dict[str, str], log: Path) -> int | None:
        """Run the command in a group of its own, of which nothing is left; None: too long."""
        with log.open("wb") as stream, _Ending() as ending:
            process = subprocess.Popen(
                self.command,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                ending.arm()
                return process.wait(self.timeout)
            except subprocess.TimeoutExpired:
                _ask(process, GRACE)
                return None
            except _Ended:
                _ask(process, HASTE)
                raise
            finally:
                ending.disarm()
                _signal(process.pid, signal.SIGKILL)
                process.wait()


class _Ended(BaseException):
    """Raised where this process is told to end while a command runs."""


class _Ending:
    """Lets a signal that ends this process end the command first, which runs in another session.

    After that the signal does what it would have done: whoever sent it sees that.
    """

    def __init__(self) -> None:
        self._kept: dict[int, Any] = {}
        self._came = 0
        self._armed = False

    def __enter__(self) -> _Ending:
        """Take over what would end this process, and not what it was told to ignore."""
        for number in ENDING if threading.current_thread() is threading.main_thread() else ():
            if signal.getsignal(number) is signal.SIG_DFL:
                self._kept[number] = signal.signal(number, self._note)
        return self

    def arm(self) -> None:
        """Raise _Ended from now on, and at once for a signal that has come already."""
        self._armed = True
        if self._came:
            raise _Ended

    def disarm(self) -> None:
        """Only take note from now on."""
        self._armed = False

    def __exit__(self, *_: object) -> None:
        """Leave the signals as they were; one that came takes its effect."""
        for number, handler in self._kept.items():
            signal.signal(number, handler)
        if self._came:
            os.kill(os.getpid(), self._came)

    def _note(self, number: int, _: object) -> None:
        self._came = number
        # Before the command's number is known, nobody could end it.
        if self._armed:
            self.disarm()
            raise _Ended


def _ask(process: subprocess.Popen[bytes], seconds: float) -> None:
    """Ask a group to end, and wait for its first process."""
    _signal(process.pid, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(seconds)


def _signal(group: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)

"""One run of a command with some bindings switched off, and what it left behind."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from kunlun_adapt.diagnostics import AdaptError
from kunlun_adapt.runtime.disabled import DISABLE
from kunlun_adapt.runtime.ledger import RUN, RUN_DIR
from kunlun_adapt.runtime.runs import Run, read_run

Outcome = Literal["passes", "fails", "times out"]

GRACE = 10.0
"""Seconds between asking a command that takes too long to end, and ending it."""


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
    """Runs one command again and again; each gets a folder of its own for its ledgers."""

    command: Sequence[str]
    folder: Path
    timeout: float | None = None
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
        environment = {**os.environ, RUN_DIR: str(ledgers), DISABLE: ",".join([*given, *ids])}
        environment.pop(RUN, None)
        began = time.monotonic()
        code = self._end_of(environment, log)
        seconds = time.monotonic() - began
        outcome: Outcome = "times out" if code is None else "fails" if code else "passes"
        trial = Trial(number, ids, outcome, code, seconds, log, read_run(ledgers))
        self.done.append(trial)
        for process in trial.run.processes:
            if DISABLE in process.ledger["refused"]:
                raise AdaptError(f"the start was refused: {process.ledger['refused']}", None)
        return trial

    def _end_of(self, environment: dict[str, str], log: Path) -> int | None:
        """Run the command in a group of its own, of which nothing is left; None: too long."""
        with log.open("wb") as stream:
            process = subprocess.Popen(
                self.command,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                return process.wait(self.timeout)
            except subprocess.TimeoutExpired:
                _signal(process.pid, signal.SIGTERM)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(GRACE)
                return None
            finally:
                _signal(process.pid, signal.SIGKILL)
                process.wait()


def _signal(group: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)

"""The start-up table: what is in effect in this process, logged once.

Most processes are adapted before SGLang sets up their logging, and not all of them open the hook
door. So the table is said when both are done, or by a thread that waits for them.
"""

from __future__ import annotations

import logging
import os
import textwrap
import threading
from collections.abc import Callable, Iterable

from kunlun_adapt.runtime import ledger, roles
from kunlun_adapt.runtime.owed import still_starting
from kunlun_adapt.runtime.probe import SIMULATED

logger = logging.getLogger("kunlun_adapt")

PAUSE = 0.25
PATIENCE = 15.0
"""Seconds after which a process that has begun and not opened the hook door is taken not to."""
BIRTH = 1.0
"""Seconds after which a forked process knows what it is to run; its hooks are its parent's."""
LONGEST = 300.0
"""Seconds after which nobody is taken to listen."""
WIDTH = 110
_LABEL = 12


class _Teller:
    """Says the table once: when the hooks are read back and somebody listens, or later."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._said = False
        self.ready = threading.Event()

    def say(self) -> bool:
        """Say the table where somebody listens; tell whether it has been said."""
        if not logger.isEnabledFor(logging.INFO):
            return False
        with self._guard:
            if not self._said:
                self._said = True
                ledger.settle()
                logger.info("%s", "\n".join(table()))
                logger.debug("%s", "\n".join(every_binding()))
        return True

    def wait(self, only_known: bool) -> None:
        """Say it as soon as it can be; a fork that the map does not name says nothing."""
        if only_known:
            self.ready.wait(BIRTH)
            if not roles.known():
                return
            self.say()
        if not self._opened() and _overdue is not None:
            _overdue(PATIENCE)
        pause = threading.Event()
        waited = 0.0
        while not self.say() and waited < LONGEST:
            pause.wait(PAUSE)
            waited += PAUSE

    def _opened(self) -> bool:
        """Wait for the hook door; tell whether it was opened.

        Patience begins when the process has: imports may take long on a busy machine.
        """
        left, waited = PATIENCE, 0.0
        while left > 0 and waited < LONGEST:
            if self.ready.wait(min(PAUSE, left)):
                return True
            waited += PAUSE
            left = PATIENCE if still_starting() else left - PAUSE
        return False


_teller: _Teller | None = None
_overdue: Callable[[float], None] | None = None


def expect(overdue: Callable[[float], None]) -> None:
    """Have the table said in this process, and in those that are forked from it.

    `overdue` is called before, with the seconds waited, where the hook door has not been opened.
    """
    global _teller, _overdue
    if _teller is None:
        _overdue = overdue
        os.register_at_fork(after_in_child=_after_fork)
        _begin(only_known=False)


def tell() -> None:
    """Say the table now that the hooks are read back, or as soon as somebody listens."""
    if _teller is not None:
        _teller.say()
        _teller.ready.set()


def table() -> list[str]:
    """Return the lines of the table: how many bindings are in which state, and why not applied."""
    record = ledger.LEDGER
    entries = sorted(record.entries.values(), key=lambda e: e.id)
    states = [e.state for e in entries]
    counts = [f"{n} {s}" for s in ("applied", "pending") if (n := states.count(s)) or not entries]
    others: tuple[ledger.State, ...] = ("failed", "missing", "disabled", "elsewhere")
    counts += [f"{n} {s}" for s in others if (n := states.count(s))]
    counts += [f"{record.planned} planned", f"{record.excluded} excluded"]
    lines = [
        f"kunlun-adapt in the {roles.current()} process ({os.getpid()}): sglang {record.release}, "
        f"map {record.map} {record.map_revision}, profile {record.profile}"
        + (" (outside the claim: unverified)" if record.unverified else "")
    ]
    if record.profile in SIMULATED.values():
        lines += _row(
            "simulator", "no card; vendor operators are stand-ins that compute on the CPU"
        )
    for fault in ledger.simulator_faults():
        lines += _row("fault", f"injected: {fault['fault']}")
    lines += _row("bindings", ", ".join(counts))
    for state in ("failed", "disabled"):
        for entry in entries:
            if entry.state == state:
                required = " (not required)" if state == "failed" and not entry.required else ""
                lines += _row(state, f"{entry.id}{required}: {entry.detail}")
    for state, default in (
        ("missing", ""),
        ("elsewhere", ""),
        ("pending", "upstream has not imported it yet"),
    ):
        for detail, ids in _by_detail(e for e in entries if e.state == state):
            lines += _row(state, f"{detail or default}: {', '.join(ids)}")
    if record.planned or record.excluded:
        lines += _row("not here", "kunlun-adapt list bindings --status planned --status excluded")
    # Of an implementation the last name; the whole path is in the ledger.
    chosen = [
        f"{what}={value.rpartition(':')[2]}" for what, (value, _) in sorted(record.chosen.items())
    ]
    if chosen:
        lines += _row("chosen", ", ".join(chosen))
    return lines


def every_binding() -> list[str]:
    """Return one line for each binding of this process."""
    record = ledger.LEDGER
    lines = [f"kunlun-adapt in the {roles.current()} process: every binding"]
    for entry in sorted(record.entries.values(), key=lambda e: e.id):
        detail = f": {entry.detail}" if entry.detail else ""
        lines.append(f"  {entry.state:<9} {entry.id}{detail}")
    for what, (value, why) in sorted(record.chosen.items()):
        lines.append(f"  chosen    {what}={value} ({why})")
    return lines


def _row(label: str, text: str) -> list[str]:
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=f"  {label:<{_LABEL}}",
        subsequent_indent=" " * (_LABEL + 2),
        break_long_words=False,
        break_on_hyphens=False,
    )


def _by_detail(entries: Iterable[ledger.Entry]) -> list[tuple[str, list[str]]]:
    found: dict[str, list[str]] = {}
    for entry in entries:
        found.setdefault(entry.detail, []).append(entry.id)
    return list(found.items())


def _begin(*, only_known: bool) -> None:
    global _teller
    _teller = _Teller()
    threading.Thread(
        target=_teller.wait, args=(only_known,), name="kunlun-adapt-report", daemon=True
    ).start()


def _after_fork() -> None:
    _begin(only_known=True)

"""Stopping the start: the table of what is not in effect, and SGLang's exit code 1.

SGLang logs and swallows an ordinary exception of a plugin; `SystemExit` ends the process.
"""

from __future__ import annotations

import logging
import os
import shlex
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kunlun_adapt.diagnostics.finding import AdaptError
from kunlun_adapt.locate import SHIPPED
from kunlun_adapt.runtime import ledger, roles

logger = logging.getLogger("kunlun_adapt")

_said: set[str] = set()


@dataclass(frozen=True, slots=True)
class Failure:
    """One binding that is not in effect, and why."""

    id: str
    why: str


def stop(title: str, failures: Sequence[Failure], advice: str) -> SystemExit:
    """Say what failed, where it stands and what to do; return the exit to raise.

    The table goes to stderr, once, and into the ledger, for where stderr is swallowed. In a thread
    other than the main one, where Python ignores SystemExit, the process is ended at once.
    """
    lines = ["", f"kunlun-adapt: {title}; the start is refused."]
    places = _places([f.id for f in failures])
    for failure in failures:
        place = places.get(failure.id)
        lines.append(f"  {failure.id}" + (f"  ({place})" if place else ""))
        lines.extend(f"      {line}" for line in failure.why.splitlines())
    lines += [f"  What to do: {advice}", ""]
    text = "\n".join(lines)
    ledger.LEDGER.refused = text.strip()
    _say(text)
    ledger.write()
    if threading.current_thread() is not threading.main_thread():
        os._exit(1)
    return SystemExit(1)


def command(arguments: str) -> str:
    """Return a command line of ours that works on this process's workspace, also from a shell."""
    root = ledger.LEDGER.workspace
    shipped = not root or any(Path(root) == place.resolve() for place in SHIPPED)
    return f"kunlun-adapt {arguments}" + ("" if shipped else f" --workspace {shlex.quote(root)}")


def stop_for(error: AdaptError, title: str) -> SystemExit:
    """Return the exit for a job that could not be done."""
    return stop(title, [Failure("kunlun-adapt", error.message)], error.hint or "see the message")


def stop_unexpected(error: Exception, title: str) -> SystemExit:
    """Return the exit for an error that nobody foresaw, with its traceback in the log."""
    logger.error("%s", title, exc_info=error)
    return stop(
        title,
        [Failure("kunlun-adapt", f"{type(error).__name__}: {error}")],
        "see the traceback above; report it if it comes from kunlun_adapt itself",
    )


def refuse_failures() -> None:
    """Raise SystemExit when a required binding of this process is not in effect."""
    entries = list(ledger.LEDGER.entries.values())
    failed = [e for e in entries if e.required and e.state == "failed"]
    if failed:
        release = ledger.LEDGER.release
        raise stop(
            f"{len(failed)} required binding(s) are not in effect in the {roles.current()} "
            f"process (sglang {release})",
            [Failure(e.id, e.detail) for e in failed],
            "mend what is said above at the place named there, then check it with "
            f"`{command('validate --sglang installed')}`; `required: false` lets the start go on "
            "without a binding",
        )


def _say(text: str) -> None:
    """Print on stderr, once per process; to the log where there is no stderr."""
    if text in _said:
        return
    _said.add(text)
    try:
        print(text, file=sys.stderr, flush=True)
    except (OSError, ValueError, AttributeError):  # closed, or None in a detached process
        logger.error("%s", text)


def _places(ids: Sequence[str]) -> dict[str, str]:
    """Return file:line:column of bindings. Slow, and so only for a start that fails anyway."""
    root, release = ledger.LEDGER.workspace, ledger.LEDGER.release
    if not root or not release or ids == ["kunlun-adapt"]:
        return {}
    try:
        from kunlun_adapt.documents import load_catalog
        from kunlun_adapt.plan import make_plan
        from kunlun_adapt.upstream import Lock, LockFacts

        # No facts of upstream are needed to know which entry of the YAML holds for the release.
        catalog = load_catalog(Path(root))
        facts = LockFacts(Lock(), release)
        plan = make_plan(catalog, facts, ledger.LEDGER.profile, beyond_claims=True)
    except Exception as error:  # the table must come out, whatever state the documents are in
        logger.debug("no positions for the failed bindings: %s", error)
        return {}
    return {b.id: os.path.join(root, str(b.position)) for b in plan.bindings if b.id in ids}

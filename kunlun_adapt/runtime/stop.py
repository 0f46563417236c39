"""Stopping the start: the table of what is not in effect, and SGLang's exit code 1.

SGLang logs and swallows an ordinary exception of a plugin; `SystemExit` ends the process.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from kunlun_adapt.diagnostics import AdaptError
from kunlun_adapt.runtime import ledger, roles

logger = logging.getLogger("kunlun_adapt")


@dataclass(frozen=True, slots=True)
class Failure:
    """One binding that is not in effect, and why."""

    id: str
    why: str


def stop(title: str, failures: Sequence[Failure], advice: str) -> SystemExit:
    """Print what failed, where it stands and what to do; return the exit to raise."""
    lines = ["", f"kunlun-adapt: {title}; the start is refused."]
    places = _places([f.id for f in failures])
    for failure in failures:
        place = places.get(failure.id)
        lines.append(f"  {failure.id}" + (f"  ({place})" if place else ""))
        lines.extend(f"      {line}" for line in failure.why.splitlines())
    lines += [f"  What to do: {advice}", ""]
    print("\n".join(lines), file=sys.stderr, flush=True)
    try:
        ledger.write()
    except OSError as error:
        logger.warning("the ledger could not be written: %s", error)
    return SystemExit(1)


def stop_for(error: AdaptError, title: str) -> SystemExit:
    """Return the exit for a job that could not be done."""
    return stop(title, [Failure("kunlun-adapt", error.message)], error.hint or "see the message")


def refuse_failures() -> None:
    """Raise SystemExit when a required binding of this process is not in effect."""
    failed = [e for e in ledger.LEDGER.entries.values() if e.required and e.state == "failed"]
    if failed:
        raise stop(
            f"{len(failed)} required binding(s) are not in effect in the {roles.current()} "
            f"process (sglang {ledger.LEDGER.release})",
            [Failure(e.id, e.detail) for e in failed],
            f"mend the entry at the place named above, then check it with `kunlun-adapt validate "
            f"--sglang {ledger.LEDGER.release}`; `required: false` lets the start go on without it",
        )


def _places(ids: Sequence[str]) -> dict[str, str]:
    """Return file:line:column of bindings. Slow, and so only for a start that fails anyway."""
    if not ids or not ledger.LEDGER.workspace:
        return {}
    from pathlib import Path

    from kunlun_adapt.documents import load_catalog

    root = Path(ledger.LEDGER.workspace)
    catalog = load_catalog(root)
    found: dict[str, str] = {}
    if catalog.platform_map is not None:
        document = catalog.platform_map
        for i, hook in enumerate(document.model.hooks):
            found[hook.id] = str(document.at("hooks", i, "id"))
        for i, shim in enumerate(document.model.shims):
            found[f"shim/{shim.module}"] = str(document.at("shims", i))
    for recipe in catalog.operators:
        for i, bind in enumerate(recipe.model.binds):
            leaf = bind.id or bind.target.rpartition(".")[2]
            found[f"{recipe.model.name}/{leaf}"] = str(recipe.at("binds", i, "target"))
    return {id: os.path.join(root, found[id]) for id in ids if id in found}

"""`kunlun-adapt bisect`: find the binding that makes a command fail, by halving."""

from __future__ import annotations

import logging
import math
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from kunlun_adapt.cli.common import (
    EXIT_FINDINGS,
    Quiet,
    TextOrJson,
    as_json,
    cannot,
    emit,
    fail,
    remark,
    working,
)
from kunlun_adapt.cli.halving import smallest
from kunlun_adapt.cli.parsing import PassingCommand
from kunlun_adapt.cli.simulated import check_device, simulated_environment
from kunlun_adapt.cli.trials import Trial, Trials
from kunlun_adapt.diagnostics import AdaptError
from kunlun_adapt.runtime.probe import probe_module
from kunlun_adapt.runtime.runs import Run

logger = logging.getLogger("kunlun_adapt")


class BisectCommand(PassingCommand):
    """Hands on the command to bisect."""

    passed = "COMMAND comes"


SETTINGS = {"cls": BisectCommand, "options_metavar": "[OPTIONS] -- COMMAND..."}

Atom = tuple[str, ...]
"""What can only be switched off together."""
Show = Callable[[str, float | None], None]


def bisect(
    context: typer.Context,
    simulator: Annotated[
        bool,
        typer.Option(
            "--simulator",
            help="No card: COMMAND runs on the simulator, with all that it takes.",
        ),
    ] = False,
    timeout: Annotated[
        float | None,
        typer.Option(
            "--timeout",
            metavar="SECONDS",
            min=0.1,
            help="A run that takes longer is ended and counts as a failure.",
            show_default="none",
        ),
    ] = None,
    logs: Annotated[
        Path | None,
        typer.Option(
            "--logs",
            metavar="FOLDER",
            help="Where the output and the ledgers of each run are kept.",
            show_default="a new folder",
        ),
    ] = None,
    format: Annotated[TextOrJson, typer.Option("--format", help="Output.")] = TextOrJson.TEXT,
    quiet: Quiet = False,
) -> None:
    """Find the binding(s) that make COMMAND fail: it is run again and again, some switched off.

    COMMAND must end by itself, with a code other than 0 when it fails. It is first run as it is,
    to see it fail, then with everything switched off, to see it pass. What can be switched off is
    read from the ledgers of the first run.

    Exit code 0: found. 1: none found, since COMMAND passes, or fails without our bindings too.
    2: it could not be found out.

    Examples:

      kunlun-adapt bisect -- python check_tokens.py

      kunlun-adapt bisect --simulator --timeout 300 -- python offline_generate.py
    """
    with cannot():
        if not context.args:
            fail("there is no command to run", "kunlun-adapt bisect -- COMMAND")
        settings = {}
        if simulator:
            check_device(probe_module(), simulator=True)
            settings = simulated_environment(quiet=quiet)
        folder = logs or Path(tempfile.mkdtemp(prefix="kunlun-adapt-bisect-"))
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            fail(f"{folder} is not empty", "name a new folder, or leave out --logs")
        trials = Trials(list(context.args), folder.resolve(), timeout, settings)
        if not quiet:
            remark(f"kunlun-adapt: output and ledgers in {folder}")
        try:
            with working("bisecting", quiet=quiet) as progress:
                found, why = _search(trials, progress or _nothing, quiet=quiet)
        except KeyboardInterrupt:
            fail("interrupted", f"what was run lies in {folder}")
        places = _places(trials.done[0].run, found)
        if format is TextOrJson.JSON:
            emit(as_json(_body(found, places, why, trials.done)))
        else:
            emit("".join(f"{line}\n" for line in _text(found, places, why, len(trials.done))))
    if not found:
        raise typer.Exit(EXIT_FINDINGS)


def _search(trials: Trials, show: Show, *, quiet: bool) -> tuple[tuple[str, ...], str]:
    """Return the bindings that must be off for the command to pass, or none and why."""

    def run(off: Sequence[str], what: str, fraction: float) -> Trial:
        show(f"run {len(trials.done) + 1}, {what}", fraction)
        trial = trials.run(off)
        if not quiet:
            remark(f"run {trial.number}, {what}: {trial.outcome} ({trial.seconds:.1f} s)")
        return trial

    first = run((), "everything on", 0.02)
    if first.outcome == "passes":
        return (), "COMMAND passes as it is"
    atoms = switchable(first.run)
    if not atoms:
        raise AdaptError(
            "COMMAND fails, and no process of it kept a ledger with a binding in effect",
            f"see {first.log}: was there a device, and SGLang started, before it failed?",
        )
    every = tuple(id for atom in atoms for id in atom)
    none = run(every, f"all {len(every)} off", 0.05)
    _must_be_off(none, every)
    if none.outcome != "passes":
        return (), f"COMMAND {none.outcome} with all {len(every)} bindings switched off as well"

    left = [len(atoms)]

    def passes(part: tuple[Atom, ...]) -> bool:
        ids = [id for atom in part for id in atom]
        done = 1 - math.log(left[0] + 1) / math.log(len(atoms) + 2)
        trial = run(ids, f"{len(ids)} of {len(every)} off", 0.05 + 0.95 * done)
        if trial.outcome == "passes":
            left[0] = len(part)
        return trial.outcome == "passes"

    found = tuple(id for atom in smallest(atoms, passes) for id in atom)
    return found, "COMMAND passes with these switched off, and with no fewer of them"


def switchable(run: Run) -> list[Atom]:
    """Return what a run had in effect, or was about to have, and can do without."""
    atoms: dict[str, list[str]] = {}
    for process in run.processes:
        for id, binding in process.bindings.items():
            if binding["kept"] or binding["state"] not in ("applied", "failed", "pending"):
                continue
            ids = atoms.setdefault(f"member {binding['member']}" if binding["member"] else id, [])
            if id not in ids:
                ids.append(id)
    return [tuple(ids) for _, ids in sorted(atoms.items(), key=lambda item: item[1])]


def _must_be_off(trial: Trial, ids: Sequence[str]) -> None:
    """Raise AdaptError where what should be off is in effect in a process."""
    off = set(ids)
    for process in trial.run.processes:
        still = [i for i, b in process.bindings.items() if i in off and b["state"] == "applied"]
        if still:
            raise AdaptError(
                f"{still[0]} is in effect in the {process.name} process, though switched off",
                "let COMMAND hand its environment on to SGLang",
            )


def _places(run: Run, ids: Sequence[str]) -> dict[str, str]:
    """Return file:line:column of bindings, as far as the workspace of the run can be read."""
    if not ids or not run.processes:
        return {}
    from kunlun_adapt.documents import load_catalog
    from kunlun_adapt.plan import make_plan
    from kunlun_adapt.upstream import Lock, LockFacts

    ledger = run.processes[0].ledger
    root = Path(ledger["workspace"])
    try:
        # No facts of upstream are needed to know which entry of the YAML holds for the release.
        facts = LockFacts(Lock(), ledger["release"])
        plan = make_plan(load_catalog(root), facts, ledger["profile"], beyond_claims=True)
    except Exception as error:  # what was found must come out, whatever became of the documents
        logger.warning("no places in the documents: %s", error)
        return {}
    return {b.id: str(root / str(b.position)) for b in plan.bindings if b.id in ids}


def _text(found: Sequence[str], places: dict[str, str], why: str, runs: int) -> list[str]:
    if not found:
        return [f"none found: {why} ({runs} run(s))"]
    lines = [f"{id}  ({places[id]})" if id in places else id for id in found]
    how = f"KUNLUN_ADAPT_DISABLE={','.join(found)}"
    return [*lines, f"{why} ({runs} run(s)); meanwhile: {how}"]


def _body(
    found: Sequence[str], places: dict[str, str], why: str, done: Sequence[Trial]
) -> dict[str, Any]:
    return {
        "found": [{"id": id, "at": places.get(id)} for id in found],
        "why": why,
        "runs": [
            {
                "number": t.number,
                "off": list(t.off),
                "outcome": t.outcome,
                "code": t.code,
                "seconds": round(t.seconds, 3),
                "log": str(t.log),
            }
            for t in done
        ],
    }


def _nothing(part: str, fraction: float | None) -> None:
    """Show no progress."""

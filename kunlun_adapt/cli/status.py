"""`kunlun-adapt status`: what the processes of a run have in effect, and what they lack."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from kunlun_adapt.cli.common import (
    EXIT_FINDINGS,
    TextOrJson,
    as_json,
    cannot,
    emit,
    fail,
)
from kunlun_adapt.cli.streams import harmless
from kunlun_adapt.diagnostics.report import aligned
from kunlun_adapt.runtime.ledger import COUNTED, RUN_DIR
from kunlun_adapt.runtime.probe import SIMULATED
from kunlun_adapt.runtime.runs import NEVER, Lack, Process, Run, read_run

STATES = ("applied", "pending", "failed", "missing", "disabled", "elsewhere")
WIDTH = 100
SHOWN = 4
"""Frames of a fallback's stack that text shows; JSON has all that were kept."""


def status(
    run: Annotated[
        Path | None,
        typer.Argument(
            metavar="[RUN]",
            help="The folder in which the processes keep their ledgers.",
            envvar=RUN_DIR,
            show_default=False,
        ),
    ] = None,
    format: Annotated[TextOrJson, typer.Option("--format", help="Output.")] = TextOrJson.TEXT,
    verbose: Annotated[
        bool,
        typer.Option(
            "--verbose",
            "-v",
            help="Also what serves, what is not due yet in one process only, and whole stacks.",
        ),
    ] = False,
) -> None:
    """Say what the processes of a run have in effect, which of them lacks what, and what fell back.

    Exit code 1: a process was refused, a required binding failed or is missing in a process, or a
    ledger cannot be read.
    Exit code 2: there is no run.

    Examples:

      kunlun-adapt status /tmp/kunlun-adapt-run-ab12cd

      KUNLUN_ADAPT_RUN_DIR=run kunlun-adapt status --verbose

      kunlun-adapt status run --format json
    """
    with cannot():
        if run is None:
            fail("no run is named", f"kunlun-adapt status RUN, or set {RUN_DIR}")
        if run.is_file():
            fail(f"{run} is a file, and a run is the folder of its ledgers", f"give {run.parent}")
        if not run.is_dir():
            fail(
                f"{run} is no folder",
                "`kunlun-adapt serve` says at start where its processes keep their ledgers",
            )
        found = read_run(run)
        if not found.processes and not found.unreadable:
            fail(
                f"{run} holds no ledger of a process",
                f"start SGLang with {RUN_DIR}={run}; a process without a device keeps none",
            )
        runs = _apart(found)
        if format is TextOrJson.JSON:
            emit(as_json(_body(found, runs)))
        else:
            emit(harmless("\n".join(_text(found, runs, verbose)) + "\n"))
    if _wrong(runs):
        raise typer.Exit(EXIT_FINDINGS)


def _apart(found: Run) -> list[Run]:
    """Return the runs whose processes share the folder, each as if it were alone there."""
    runs: dict[str, list[Process]] = {}
    for process in found.processes:
        runs.setdefault(process.ledger["run"], []).append(process)
    return [replace(found, processes=tuple(own)) for own in runs.values()] or [found]


def _wrong(runs: Iterable[Run]) -> bool:
    return any(run.wrong() for run in runs)


def _body(run: Run, runs: Iterable[Run]) -> dict[str, Any]:
    return {
        "run": os.path.abspath(run.folder),
        "ok": not _wrong(runs),
        "processes": [_process(p) for p in run.processes],
        "bindings": [
            {"id": id, "states": {str(pid): state for pid, state in run.states(id).items()}}
            for id in run.ids()
        ],
        "lacks": [
            {
                "binding": lack.binding,
                "process": lack.process,
                "pid": lack.pid,
                "state": lack.state,
                "required": lack.required,
                "detail": lack.detail,
            }
            for one in runs
            for lack in one.lacks()
        ],
        "nowhere": [{"binding": id, "why": why} for id, why in run.nowhere().items()],
        "disabled": run.disabled(),
        "differing": {key: list(values) for key, values in run.differing.items()},
        "counted": COUNTED,
        "operators": run.operators(),
        "fallbacks": run.fallbacks(),
        "unreadable": [{"file": u.file, "why": u.why} for u in run.unreadable],
        "unseen": [{"pid": u.pid, "what": u.what} for u in run.unseen],
        "earlier": run.earlier,
    }


def _process(process: Process) -> dict[str, Any]:
    ledger = process.ledger
    kept = (
        "run",
        "process",
        "pid",
        "parent",
        "started",
        "release",
        "profile",
        "map",
        "map_revision",
    )
    return {
        **{key: ledger[key] for key in kept},
        "ranks": ledger["ranks"],
        "unverified": ledger["unverified"],
        "refused": ledger["refused"],
        "state": process.state,
        "counts": {state: process.count(state) for state in STATES},
        "planned": ledger["planned"],
        "excluded": ledger["excluded"],
        "chosen": ledger["chosen"],
        "simulator_faults": ledger["simulator_faults"],
        "file": process.file,
    }


def _text(found: Run, runs: list[Run], verbose: bool) -> list[str]:
    lines = [f"run {found.folder}"]
    if len(runs) > 1:
        lines += [f"{len(runs)} runs share this folder; give each server one of its own"]
    for number, run in enumerate(runs, 1):
        if len(runs) > 1:
            since = run.processes[0].ledger["started"]
            lines += ["", f"run {number} of {len(runs)}, since {since}:"]
        lines += _one(run, verbose)
    lines += _sections(
        ("cannot be read", [f"{u.file}: {u.why}" for u in found.unreadable]),
        ("without a ledger in this folder", [f"{u.pid}, {u.what}" for u in found.unseen]),
        ("differs between processes", [f"{k}: {', '.join(v)}" for k, v in found.differing.items()]),
    )
    if found.earlier:
        lines += ["", f"{found.earlier} ledger(s) of earlier runs in this folder are left out"]
    return [*lines, "", _verdict(found, _wrong(runs))]


def _one(run: Run, verbose: bool) -> list[str]:
    """Return what the processes of one run say."""
    lines = _head(run)
    if run.processes:
        lines += ["", *_table(run.processes)]
    lacks = run.lacks()
    told = [x for x in lacks if verbose or x.state == "failed" or _must(x)]
    lines += _sections(
        ("faults injected into the simulated device", _faults(run)),
        ("refused", _refusals(run)),
        ("lacking", _lacking(told)),
        ("applied in no process of this run", _grouped(run.nowhere())),
        ("switched off by the user", _listed(run.disabled())),
        ("fallbacks", _fallbacks(run, verbose)),
        (f"calls ({COUNTED})", _calls(run) if verbose else []),
    )
    quiet = [lack.state for lack in lacks if lack not in told]
    counts = [
        f"{quiet.count(state)} {what}"
        for state, what in (
            ("pending", "not due yet in one process though taken up in another"),
            ("missing", "missing and not required"),
        )
        if state in quiet
    ]
    if counts:
        lines += ["", f"no fault: {', '.join(counts)}; --verbose lists them"]
    return lines


def _must(lack: Lack) -> bool:
    return lack.required and lack.state == "missing"


def _sections(*sections: tuple[str, list[str]]) -> list[str]:
    lines = []
    for title, section in sections:
        if section:
            lines += ["", f"{title}:", *(f"  {line}" for line in section)]
    return lines


def _head(run: Run) -> list[str]:
    """Return what all processes share; where they do not, it is listed as differing."""
    if not run.processes:
        return []
    first = run.processes[0].ledger
    profile = first["profile"]
    told = " (no card: vendor operators are stand-ins)" if profile in SIMULATED.values() else ""
    unverified = ", outside the claim" if any(p.ledger["unverified"] for p in run.processes) else ""
    return [
        f"sglang {first['release']}{unverified}, map {first['map']} {first['map_revision']}, "
        f"profile {profile}{told}; {first['planned']} planned, {first['excluded']} excluded"
    ]


def _table(processes: Iterable[Process]) -> list[str]:
    rows: list[tuple[str, ...]] = [("process", "pid", "parent", "state", *STATES, "fallbacks")]
    for process in processes:
        ledger = process.ledger
        rows.append(
            (
                harmless(process.label),
                str(process.pid),
                str(ledger["parent"]),
                "refused" if ledger["refused"] else process.state,
                *(str(process.count(state) or "-") for state in STATES),
                str(sum(f["calls"] + f["refused"] for f in ledger["fallbacks"]) or "-"),
            )
        )
    return aligned(rows)


def _faults(run: Run) -> list[str]:
    fired: dict[str, int] = {}
    for process in run.processes:
        for fault in process.ledger["simulator_faults"]:
            fired[fault["fault"]] = fired.get(fault["fault"], 0) + fault["fired"]
    return [f"{fault}: fired {times} times" for fault, times in fired.items()]


def _refusals(run: Run) -> list[str]:
    lines = []
    for process in run.processes:
        if process.ledger["refused"]:
            lines.append(f"{process.label} {process.pid}")
            lines += [f"  {line}" for line in str(process.ledger["refused"]).splitlines()]
    return lines


def _lacking(lacks: Iterable[Lack]) -> list[str]:
    """Return failures one by one, and the rest by process."""
    failed: list[str] = []
    others: dict[str, list[str]] = {}
    for lack in lacks:
        if lack.state == "failed":
            optional = "" if lack.required else " (not required)"
            failed.append(f"{lack.process} {lack.pid}: {lack.binding} failed{optional}")
            failed += [f"    {line}" for line in lack.detail.splitlines()]
        else:
            where = f"{lack.process} {lack.pid}: {lack.state}"
            where += f" ({lack.detail})" if lack.detail else ""
            if lack.state != "missing" or lack.detail == NEVER:
                where += ", though applied or failed in another"
            others.setdefault(where, []).append(lack.binding)
    for where, ids in others.items():
        failed += [f"{where}:", *_listed(ids, "    ")]
    return failed


def _grouped(bindings: dict[str, str]) -> list[str]:
    found: dict[str, list[str]] = {}
    for id, why in bindings.items():
        found.setdefault(why, []).append(id)
    return [line for why, ids in found.items() for line in (f"{why}:", *_listed(ids, "    "))]


def _listed(ids: Iterable[str], indent: str = "") -> list[str]:
    return _wrapped(", ".join(ids), indent)


def _wrapped(text: str, indent: str) -> list[str]:
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _fallbacks(run: Run, verbose: bool) -> list[str]:
    lines = []
    for one in run.fallbacks():
        who = ", ".join(f"{p['process']} {p['pid']}" for p in one["processes"])
        refused = f", {one['refused']} refused" if one["refused"] else ""
        lines.append(f"{one['operator']}: {one['tier']}, {one['calls']} call(s){refused} in {who}")
        place = f" ({one['at']})" if one["at"] else ""
        lines += _wrapped(f"for {one['reason']}; first {one['call']}{place}", "    ")
        if one["why"]:
            lines += _wrapped(one["why"], "    ")
        stack = one["stack"] if verbose else one["stack"][-SHOWN:]
        lines += [f"    {frame}" for frame in stack]
    return lines


def _calls(run: Run) -> list[str]:
    rows = [
        (operator, tier, str(calls))
        for operator, tiers in run.operators().items()
        for tier, calls in tiers.items()
    ]
    return aligned(rows) if rows else []


def _verdict(run: Run, wrong: bool) -> str:
    """Return one closing line; what cannot be known from here is part of it."""
    if not run.processes:
        return "no process has left a ledger that can be read: something is wrong, see above."
    states = [p.state for p in run.processes]
    counts = ", ".join(f"{states.count(s)} {s}" for s in dict.fromkeys(states))
    total = len(states)
    if "running" in states and {"gone", "zombie"} & set(states):
        counts += " while others run"
    said = "something is wrong, see above" if wrong else "nothing required is missing"
    return (
        f"{total} process(es), {counts}: {said}. A process that never loaded the plugin "
        "keeps no ledger; it shows only as a parent or a running child of one that does."
    )

"""`kunlun-adapt list`: what there is in the workspace."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from enum import Enum
from typing import Annotated, Any, get_args

import typer
from rapidfuzz import process
from rich.console import Console
from rich.table import Table

from kunlun_adapt.check.context import closed
from kunlun_adapt.cli.common import (
    Offline,
    OneRelease,
    Quiet,
    TextOrJson,
    Workspace,
    as_json,
    cannot,
    default_release,
    emit,
    facts_of,
    open_lock,
    open_workspace,
)
from kunlun_adapt.diagnostics import CODES, AdaptError
from kunlun_adapt.diagnostics.report import aligned
from kunlun_adapt.documents import Catalog
from kunlun_adapt.plan import Binding, make_plan
from kunlun_adapt.plan.binding import Kind, Status
from kunlun_adapt.upstream import Facts

_WIDE_ONLY = ("family", "target", "claims", "file", "line")
"""Columns that a narrow terminal goes without; a pipe and JSON have them all."""

_STATUSES: tuple[Status, ...] = get_args(Status)


class What(str, Enum):
    """What can be listed."""

    BINDINGS = "bindings"
    OPERATORS = "operators"
    CODES = "codes"
    RELEASES = "releases"


class By(str, Enum):
    """What the coverage is counted by."""

    FAMILY = "family"
    KIND = "kind"


def list_(
    what: Annotated[What, typer.Argument(help="What to list.")],
    sglang: OneRelease = None,
    workspace: Workspace = None,
    by: Annotated[
        By | None,
        typer.Option("--by", help="Bindings: only count them, by this.", show_default=False),
    ] = None,
    status: Annotated[
        list[str] | None,
        typer.Option(
            "--status",
            metavar="STATUS",
            help="Bindings: only these: bound, planned or excluded. May be given several times.",
            show_default=False,
        ),
    ] = None,
    family: Annotated[
        list[str] | None,
        typer.Option(
            "--family",
            metavar="FAMILY",
            help="Bindings: only of this family. May be given several times.",
            show_default=False,
        ),
    ] = None,
    kind: Annotated[
        list[str] | None,
        typer.Option(
            "--kind",
            metavar="KIND",
            help="Bindings: only factory, method, hook, kernel or shim. May be given several "
            "times.",
            show_default=False,
        ),
    ] = None,
    format: Annotated[TextOrJson, typer.Option("--format", help="Output.")] = TextOrJson.TEXT,
    offline: Offline = False,
    quiet: Quiet = False,
) -> None:
    """List bindings, operators, finding codes, or the releases that the lock verified.

    Examples:

      kunlun-adapt list bindings --sglang 0.5.19

      kunlun-adapt list bindings --by family

      kunlun-adapt list bindings --status planned --family moe

      kunlun-adapt list operators --format json

      kunlun-adapt list codes
    """
    asked = {"--by": by, "--status": status, "--family": family, "--kind": kind}
    _for_bindings(what, {**asked, "--sglang": sglang})
    _known("--status", status, _STATUSES)
    _known("--kind", kind, get_args(Kind))
    with cannot():
        if what is What.CODES:
            rows = [
                {"code": c.code, "name": c.name, "severity": c.severity.value, "meaning": c.meaning}
                for c in CODES.values()
            ]
            _show({"codes": rows}, format)
            return
        root, catalog = open_workspace(workspace, quiet=quiet)
        lock = open_lock(root)
        if what is What.RELEASES:
            _show({"releases": [{"release": r} for r in lock.releases]}, format)
            return
        if what is What.OPERATORS:
            _show({"operators": _operators(catalog)}, format)
            return
        facts = facts_of(
            sglang or default_release(catalog, lock), lock, offline=offline, quiet=quiet
        )
        every = union_of_profiles(catalog, facts)
        _known("--family", family, sorted({b.family for b in every}))
        bindings = [
            b
            for b in every
            if (not status or b.status in status)
            and (not family or b.family in family)
            and (not kind or b.kind in kind)
        ]
        if by is not None:
            _coverage(bindings, by, facts.version, format)
            return
        _show({"release": facts.version, "bindings": [_binding(b) for b in bindings]}, format)
        if format is TextOrJson.TEXT and not quiet:
            emit("\n")
            _coverage(bindings, By.FAMILY, facts.version, format)


def _for_bindings(what: What, options: dict[str, object]) -> None:
    """Refuse options that would do nothing. Raises BadParameter."""
    given = [name for name, value in options.items() if value]
    if given and what is not What.BINDINGS:
        raise typer.BadParameter(f"{given[0]} is for bindings, and {what.value} have none of it")


def _known(option: str, given: list[str] | None, names: Sequence[str]) -> None:
    """Raises BadParameter for a name that stands for nothing: it would list nothing."""
    for name in given or ():
        if name not in names:
            near = process.extractOne(name, names, score_cutoff=60)
            hint = f"did you mean {near[0]}?" if near else f"one of {', '.join(names)}"
            raise typer.BadParameter(f"{option}: there is no {name!r}; {hint}")


def _coverage(bindings: Sequence[Binding], by: By, release: str, format: TextOrJson) -> None:
    """Print how many bindings are bound, planned and excluded in each group, and in all."""
    groups = sorted({getattr(b, by.value) for b in bindings})
    rows = [
        {by.value: group, **_counts(b for b in bindings if getattr(b, by.value) == group)}
        for group in groups
    ]
    total = _counts(bindings)
    if format is TextOrJson.JSON:
        emit(as_json({"release": release, "by": by.value, "groups": rows, "total": total}))
        return
    headings = (by.value, *_STATUSES, "total")
    lines = [[str(row[name]) for name in headings] for row in rows]
    lines.append(["total", *map(str, total.values())])
    console = Console()
    if not console.is_terminal:
        emit("".join(f"{line}\n" for line in aligned([headings, *lines])))
        return
    table = Table(box=None, header_style="bold")
    for index, heading in enumerate(headings):
        table.add_column(heading, justify="right" if index else "left")
    for line in lines:
        table.add_row(*line, style="bold" if line is lines[-1] else None)
    console.print(table, markup=False)


def _counts(bindings: Iterable[Binding]) -> dict[str, int]:
    found = [b.status for b in bindings]
    return {**{s: found.count(s) for s in _STATUSES}, "total": len(found)}


def union_of_profiles(catalog: Catalog, facts: Facts) -> list[Binding]:
    """Return each binding once; one that a profile binds counts as bound. Raises AdaptError.

    In a release that has no door for plugins none is bound.
    """
    if catalog.platform_map is None:
        raise AdaptError("the workspace has no usable platform_map.yaml", "kunlun-adapt validate")
    found: dict[str, Binding] = {}
    for profile in catalog.platform_map.model.device.profiles:
        for binding in make_plan(catalog, facts, profile).bindings:
            known = found.get(binding.id)
            if known is None or (known.status != "bound" and binding.status == "bound"):
                found[binding.id] = binding
    missing = closed(catalog.platform_map.model, facts)
    if not missing:
        return list(found.values())
    why = f"sglang {facts.version} has no {' and no '.join(missing)}"
    return [replace(b, status="excluded", status_why=why) for b in found.values()]


def served(binding: Binding) -> str:
    """Say whether a server runs the binding: `simulator`, `resolved only`, or `no`."""
    if binding.status != "bound":
        return "no"
    return "simulator" if binding.served else "resolved only"


def _binding(binding: Binding) -> dict[str, Any]:
    return {
        "id": binding.id,
        "kind": binding.kind,
        "family": binding.family,
        "target": binding.target,
        "status": binding.status,
        "served": served(binding),
        "why": _why(binding),
        "claims": binding.claims,
        "file": binding.position.file,
        "line": binding.position.line,
    }


def _why(binding: Binding) -> str:
    """Say why a binding is left out or not served; of a planned one, what it is for."""
    if binding.status == "planned":
        return binding.why
    return binding.status_why or binding.served_why or binding.why


def _operators(catalog: Catalog) -> list[dict[str, Any]]:
    return [
        {
            "name": d.model.name,
            "family": d.model.family,
            "tiers": [t.name for t in d.model.kernels],
            "why": d.model.why,
            "file": d.file,
            "line": d.at("name").line,
        }
        for d in catalog.operators
    ]


def _show(body: dict[str, Any], format: TextOrJson) -> None:
    if format is TextOrJson.JSON:
        emit(as_json(body))
        return
    rows = next(v for v in body.values() if isinstance(v, list))
    console = Console()
    if not console.is_terminal:
        for row in rows:
            emit("\t".join(_cell(v) for v in row.values()) + "\n")
        return
    columns = _fitting(rows, console.width)
    table = Table(box=None, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(_cell(row[column]) for column in columns))
    console.print(table, markup=False)


def _fitting(rows: list[dict[str, Any]], width: int) -> list[str]:
    """Return the columns to show: all where a line of each fits, else those that are read first."""
    columns = list(rows[0]) if rows else []
    widths = [max(len(c), *(len(_cell(row[c])) for row in rows)) + 1 for c in columns]
    return columns if sum(widths) <= width else [c for c in columns if c not in _WIDE_ONLY]


def _cell(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)

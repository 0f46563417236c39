"""`kunlun-adapt list`: what there is in the workspace."""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

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
    obtain,
    open_lock,
    open_workspace,
)
from kunlun_adapt.diagnostics import CODES, AdaptError
from kunlun_adapt.documents import Catalog
from kunlun_adapt.plan import Binding, make_plan
from kunlun_adapt.upstream import Facts, LockFacts, Resolver

_WIDE_ONLY = ("family", "target", "claims", "file", "line")
"""Columns that a narrow terminal goes without; a pipe and JSON have them all."""


class What(str, Enum):
    """What can be listed."""

    BINDINGS = "bindings"
    OPERATORS = "operators"
    CODES = "codes"
    RELEASES = "releases"


def list_(
    what: Annotated[What, typer.Argument(help="What to list.")],
    sglang: OneRelease = None,
    workspace: Workspace = None,
    format: Annotated[TextOrJson, typer.Option("--format", help="Output.")] = TextOrJson.TEXT,
    offline: Offline = False,
    quiet: Quiet = False,
) -> None:
    """List bindings, operators, finding codes, or the releases that the lock verified.

    Examples:

      kunlun-adapt list bindings --sglang 0.5.19

      kunlun-adapt list operators --format json

      kunlun-adapt list codes
    """
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
        spec = sglang or default_release(catalog, lock)
        facts: Facts = (
            LockFacts(lock, spec)
            if spec in lock.releases
            else Resolver(obtain(spec, offline=offline, quiet=quiet))
        )
        rows = [_binding(b) for b in union_of_profiles(catalog, facts)]
        _show({"release": facts.version, "bindings": rows}, format)


def union_of_profiles(catalog: Catalog, facts: Facts) -> list[Binding]:
    """Return each binding once; one that a profile binds counts as bound. Raises AdaptError."""
    if catalog.platform_map is None:
        raise AdaptError("the workspace has no usable platform_map.yaml", "kunlun-adapt validate")
    found: dict[str, Binding] = {}
    for profile in catalog.platform_map.model.device.profiles:
        for binding in make_plan(catalog, facts, profile).bindings:
            known = found.get(binding.id)
            if known is None or (known.status != "bound" and binding.status == "bound"):
                found[binding.id] = binding
    return list(found.values())


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
        "why": binding.status_why or binding.served_why or binding.why,
        "claims": binding.claims,
        "file": binding.position.file,
        "line": binding.position.line,
    }


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

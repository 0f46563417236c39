"""`kunlun-adapt validate`: check the documents' claims against real releases."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

import typer

from kunlun_adapt.check import check_release
from kunlun_adapt.cli.common import (
    EXIT_FINDINGS,
    Offline,
    Quiet,
    Releases,
    Workspace,
    cannot,
    default_release,
    emit,
    obtain,
    open_lock,
    open_workspace,
)
from kunlun_adapt.diagnostics import (
    ReleaseReport,
    Severity,
    render_github,
    render_json,
    render_text,
    worst,
)
from kunlun_adapt.upstream import Resolver


class Format(str, Enum):
    """How findings are printed."""

    TEXT = "text"
    JSON = "json"
    GITHUB = "github"


class FailOn(str, Enum):
    """From which severity on findings give exit code 1."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"
    NEVER = "never"


def validate(
    sglang: Releases = None,
    workspace: Workspace = None,
    format: Annotated[Format, typer.Option("--format", help="Output format.")] = Format.TEXT,
    fail_on: Annotated[
        FailOn, typer.Option("--fail-on", help="Severity that gives exit code 1.")
    ] = FailOn.ERROR,
    beyond_claims: Annotated[
        bool,
        typer.Option("--beyond-claims", help="Check every binding as if it claimed the release."),
    ] = False,
    offline: Offline = False,
    quiet: Quiet = False,
) -> None:
    """Check the documents' claims against one or more SGLang releases, without importing them.

    Exit codes: 0 fine, 1 findings at or above --fail-on, 2 could not do the job.

    Examples:

      kunlun-adapt validate --sglang 0.5.19

      kunlun-adapt validate --sglang 0.5.17 --sglang 0.5.23 --format json

      kunlun-adapt validate --sglang 0.5.24 --beyond-claims
    """
    reports: list[ReleaseReport] = []
    with cannot():
        root, catalog = open_workspace(workspace, quiet=quiet)
        lock = open_lock(root)
        for spec in sglang or [default_release(catalog, lock)]:
            release = obtain(spec, offline=offline, quiet=quiet)
            reports.append(
                check_release(catalog, Resolver(release), lock=lock, beyond_claims=beyond_claims)
            )
    render = {Format.TEXT: render_text, Format.JSON: render_json, Format.GITHUB: render_github}
    emit(render[format](reports))
    gravest = worst(reports)
    if fail_on is not FailOn.NEVER and gravest is not None and gravest >= Severity(fail_on.value):
        raise typer.Exit(EXIT_FINDINGS)

"""`kunlun-adapt validate`: check the documents' claims against real releases."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer
from packaging.version import Version

from kunlun_adapt.check import check_release
from kunlun_adapt.check.releases import release_at
from kunlun_adapt.cli.common import (
    EXIT_FINDINGS,
    Offline,
    Quiet,
    Releases,
    Workspace,
    as_release,
    cannot,
    default_release,
    emit,
    obtain,
    open_lock,
    open_workspace,
    remark,
    terminal,
    working,
)
from kunlun_adapt.cli.reports import Output
from kunlun_adapt.cli.writing import need_folder, write_whole
from kunlun_adapt.diagnostics import (
    CODES,
    ReleaseReport,
    Severity,
    render_github,
    render_json,
    render_text,
    worst,
)
from kunlun_adapt.diagnostics.report import counted
from kunlun_adapt.diagnostics.selection import Selection, UnknownCode
from kunlun_adapt.upstream import Resolver


class Format(str, Enum):
    """How findings are printed."""

    TEXT = "text"
    JSON = "json"
    SARIF = "sarif"
    JUNIT = "junit"
    GITHUB = "github"


class FailOn(str, Enum):
    """From which severity on findings give exit code 1."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"
    NEVER = "never"

    @property
    def severity(self) -> Severity | None:
        return None if self is FailOn.NEVER else Severity(self.value)


def validate(
    sglang: Releases = None,
    workspace: Workspace = None,
    format: Annotated[Format, typer.Option("--format", help="Output format.")] = Format.TEXT,
    output: Output = None,
    select: Annotated[
        list[str] | None,
        typer.Option(
            "--select",
            metavar="CODE[,CODE]",
            help="Only findings with these codes; KA1 stands for all KA1xx. Findings that keep "
            "others from being looked for are always shown.",
            show_default=False,
        ),
    ] = None,
    ignore: Annotated[
        list[str] | None,
        typer.Option(
            "--ignore",
            metavar="CODE[,CODE]",
            help="No findings with these codes; of two that fit, the longer one wins.",
            show_default=False,
        ),
    ] = None,
    fail_on: Annotated[
        FailOn, typer.Option("--fail-on", help="Severity that gives exit code 1.")
    ] = FailOn.ERROR,
    beyond_claims: Annotated[
        bool,
        typer.Option("--beyond-claims", help="Check every binding as if it claimed the release."),
    ] = False,
    verbose: Annotated[
        bool,
        typer.Option(
            "--verbose", "-v", help="Show info findings too; as text they are only counted."
        ),
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

      kunlun-adapt validate --select KA1,KA2 --ignore KA107 --format sarif --output findings.sarif
    """
    selection = _selection(select, ignore)
    reports: list[ReleaseReport] = []
    if output is not None and str(output) == "-":
        output = None
    with cannot():
        if output is not None:
            need_folder(output)  # before the work, not after it
        root, catalog = open_workspace(workspace, quiet=quiet)
        lock = open_lock(root)
        specs = sglang or [default_release(catalog, lock)]
        for number, spec in enumerate(specs, 1):
            release = obtain(spec, offline=offline, quiet=quiet)
            count = f" ({number} of {len(specs)})" if len(specs) > 1 else ""
            with working(f"checking sglang {release.version}{count}", quiet=quiet) as progress:
                facts = Resolver(release, progress=progress)
                report = check_release(
                    catalog,
                    facts,
                    lock=lock,
                    beyond_claims=beyond_claims,
                    source=spec,
                    workspace=None if workspace is None else str(workspace),
                    ignored=selection.ignores,
                )
            to_come = release_at(release.version)
            if to_come != Version(release.version).public and not quiet:
                remark(
                    f"sglang {release.version} is no release: ranges are proposed for {to_come}, "
                    f"and {as_release(spec, release.version)} checks it as that"
                )
            reports.append(selection.of_report(report))
        infos = verbose or fail_on is FailOn.INFO
        console = terminal(sys.stdout) if format is Format.TEXT and output is None else None
        if console is not None:
            from kunlun_adapt.diagnostics.terminal import print_reports

            notes = _notes(reports, infos)
            print_reports(console, reports, notes=notes, infos=infos)
        else:
            text = _text(reports, format, infos=infos, fail_on=fail_on)
            _deliver(text, output, reports, quiet=quiet)
    gravest, limit = worst(reports), fail_on.severity
    if limit is not None and gravest is not None and gravest >= limit:
        raise typer.Exit(EXIT_FINDINGS)


def _selection(select: list[str] | None, ignore: list[str] | None) -> Selection:
    """Read both options. Raises BadParameter, with the nearest codes, for what is no code."""
    try:
        return Selection.of(select or (), ignore or ())
    except UnknownCode as error:
        from kunlun_adapt.cli.explain import near_codes

        # Of less than a section and a digit, no code is like any more than others are.
        hint = (
            f"did you mean {', '.join(near_codes(error.selector))}?"
            if len(error.selector) > 3
            else f"the sections are {', '.join(sorted({code[:3] for code in CODES}))};"
        )
        raise typer.BadParameter(
            f"{error.selector!r} is no finding code and no section of them; {hint} "
            "kunlun-adapt list codes has them all"
        ) from error


def _notes(reports: Sequence[ReleaseReport], infos: bool) -> list[str]:
    hidden = 0 if infos else sum(r.count(Severity.INFO) for r in reports)
    return [f"{hidden} info not shown: --verbose shows them"] if hidden else []


def _text(reports: Sequence[ReleaseReport], format: Format, *, infos: bool, fail_on: FailOn) -> str:
    if format is Format.JSON:
        return render_json(reports)
    if format is Format.GITHUB:
        return render_github(reports)
    if format is Format.SARIF:
        return _sarif(reports)
    if format is Format.JUNIT:
        from kunlun_adapt.diagnostics.junit import render_junit

        return render_junit(reports, fail_on=fail_on.severity)
    return render_text(reports, notes=_notes(reports, infos), infos=infos)


def _sarif(reports: Sequence[ReleaseReport]) -> str:
    from kunlun_adapt import __version__
    from kunlun_adapt.cli.explain import page_text
    from kunlun_adapt.diagnostics.sarif import render_sarif

    return render_sarif(reports, version=__version__, page=page_text, home=_published())


def _published() -> str | None:
    """Return where the documentation is published, as the installed package's metadata has it."""
    from importlib.metadata import PackageNotFoundError, metadata

    try:
        urls = metadata("kunlun-adapt").get_all("Project-URL") or []
    except PackageNotFoundError:
        return None
    named = dict(url.split(", ", 1) for url in urls if ", " in url)
    return named.get("Documentation")


def _deliver(
    text: str, output: Path | None, reports: Sequence[ReleaseReport], *, quiet: bool
) -> None:
    if output is None:
        emit(text)
        return
    write_whole(output, text)
    if not quiet:
        remark(f"written to {output}: {counted(*reports) or 'no findings'}")

"""`kunlun-adapt matrix`: how every binding stands in every release."""

from __future__ import annotations

import shutil
import sys
from typing import Annotated

import typer

from kunlun_adapt.cli.common import (
    EXIT_FINDINGS,
    Offline,
    Quiet,
    Workspace,
    as_json,
    cannot,
    emit,
    named_releases,
    obtain,
    open_lock,
    open_workspace,
    refuse_faulty,
    remark,
    working,
)
from kunlun_adapt.cli.reports import Format, Output, ReportFormat, format_for
from kunlun_adapt.cli.writing import need_folder, write_whole
from kunlun_adapt.diagnostics import AdaptError
from kunlun_adapt.evolve.families import unknown_family
from kunlun_adapt.evolve.matrix import Job, Matrix, State, check_all, joined, shown_releases
from kunlun_adapt.evolve.matrix.text import (
    counts_markdown,
    counts_text,
    render_markdown,
    render_text,
    summary,
)


def matrix(
    sglang: Annotated[
        list[str] | None,
        typer.Option(
            "--sglang",
            metavar="RELEASE",
            help="A version, a wheel, a folder, git:PATH@REV, or 'installed'. May be given several "
            "times. Default: all that the lock holds, and what of the map's claim was fetched "
            "before.",
            show_default=False,
            callback=named_releases,
        ),
    ] = None,
    workspace: Workspace = None,
    format: ReportFormat = None,
    output: Output = None,
    family: Annotated[
        list[str] | None,
        typer.Option(
            "--family",
            metavar="FAMILY",
            help="Only bindings of this family. May be given several times.",
            show_default=False,
        ),
    ] = None,
    state: Annotated[
        list[State] | None,
        typer.Option(
            "--state",
            help="Only bindings that are so in one of the releases. May be given several times.",
            show_default=False,
        ),
    ] = None,
    counts: Annotated[
        bool,
        typer.Option("--counts", help="Only how many are bound, planned, excluded and broken."),
    ] = False,
    beyond_claims: Annotated[
        bool,
        typer.Option("--beyond-claims", help="Check every binding as if it claimed each release."),
    ] = False,
    verbose: Annotated[
        bool,
        typer.Option("--verbose", "-v", help="Text: say of each binding why and what changed."),
    ] = False,
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs",
            "-j",
            min=1,
            help="Releases to check at a time. Default: one for each core.",
            show_default=False,
        ),
    ] = None,
    offline: Offline = False,
    quiet: Quiet = False,
) -> None:
    """Show how every binding stands in every release.

    A binding holds, changed or moved since the release before, or is planned,
    excluded or broken. With --beyond-claims what is broken outside the claims
    is shown, and does not count for the exit code.

    Exit codes: 0 fine, 1 something that is claimed is broken, 2 could not do the job.

    Examples:

      kunlun-adapt matrix

      kunlun-adapt matrix --state broken --state moved --verbose

      kunlun-adapt matrix --sglang 0.5.19 --sglang 0.5.24 --beyond-claims

      kunlun-adapt matrix --output matrix.html

      kunlun-adapt matrix --counts --format markdown
    """
    chosen = format_for(format, output)
    if output is not None and str(output) == "-":
        output = None
    if counts and chosen is Format.HTML:
        raise typer.BadParameter("--counts is text, markdown or json; the page has the counts")
    with cannot():
        if output is not None:
            need_folder(output)  # before the work, not after it
        root, catalog = open_workspace(workspace, quiet=quiet)
        refuse_faulty(catalog)
        if unknown := unknown_family(family or (), catalog):
            raise typer.BadParameter(unknown)
        if catalog.platform_map is None:
            raise AdaptError("the workspace has no platform_map.yaml", "kunlun-adapt validate")
        claim = catalog.platform_map.model.sglang
        lock = open_lock(root)
        sources = sglang or list(shown_releases(claim, lock))
        if not sources:
            raise AdaptError(
                "no release is named, none is locked, and of the claim none was fetched yet",
                "give --sglang VERSION",
            )
        # Fetched here, one after the other, so that no two processes fetch the same one.
        releases = [obtain(source, offline=offline, quiet=quiet).version for source in sources]
        named = None if workspace is None else str(workspace)
        job = Job(root, lock, beyond_claims, named)
        with working(f"checking {len(releases)} releases", quiet=quiet) as progress:
            found = check_all(job, catalog, sources, processes=jobs, progress=progress)
        whole = joined(found, claim=claim, beyond_claims=beyond_claims)
        shown = whole.only(family or (), state or ())
        # Only a person sees the terminal's width; what a program reads never depends on it.
        seen = output is None and sys.stdout.isatty()
        width = shutil.get_terminal_size().columns if seen else None
        text = _rendered(shown, chosen, counts=counts, verbose=verbose, width=width)
        if output is None:
            emit(text)
        else:
            write_whole(output, text)
            if not quiet:
                remark(f"written to {output}: {summary(shown)}")
        unclaimed = [column.release for column in whole.columns if not column.claimed]
        if unclaimed and not beyond_claims and not quiet:
            remark(
                f"the map claims {claim}, not {', '.join(unclaimed)}: "
                "--beyond-claims checks them as if it did"
            )
    if shown.broken:
        raise typer.Exit(EXIT_FINDINGS)


def _rendered(
    found: Matrix, format: Format, *, counts: bool, verbose: bool, width: int | None
) -> str:
    if format is Format.JSON:
        return as_json(found.to_json(counts=counts))
    if format is Format.HTML:
        # Imported here: Jinja2 takes longer than all the other formats.
        from kunlun_adapt.evolve.matrix.page import render_html

        return render_html(found)
    if format is Format.MARKDOWN:
        return counts_markdown(found) if counts else render_markdown(found)
    return counts_text(found) if counts else render_text(found, verbose=verbose, width=width)

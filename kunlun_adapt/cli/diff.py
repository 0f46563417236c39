"""`kunlun-adapt diff`: what changed in upstream for this workspace between two releases."""

from __future__ import annotations

from typing import Annotated

import typer
from packaging.version import Version

from kunlun_adapt.cli.common import (
    EXIT_FINDINGS,
    Offline,
    Quiet,
    Workspace,
    as_json,
    cannot,
    emit,
    named_release,
    obtain,
    open_lock,
    open_workspace,
    refuse_faulty,
    remark,
    working,
)
from kunlun_adapt.cli.reports import Format, Output, ReportFormat, format_for
from kunlun_adapt.cli.writing import need_folder, write_whole
from kunlun_adapt.evolve.diff import FeatureDiff, feature_diff
from kunlun_adapt.evolve.diff.text import render_markdown, render_text, summary
from kunlun_adapt.evolve.families import OFFERED, unknown_family
from kunlun_adapt.upstream.following import FollowingResolver

_RELEASE = "A version, a wheel, a folder, git:PATH@REV, or 'installed'."


def diff(
    old: Annotated[
        str, typer.Argument(metavar="OLD", help=f"The release to come from. {_RELEASE}")
    ],
    new: Annotated[str, typer.Argument(metavar="NEW", help="The release to go to.")],
    workspace: Workspace = None,
    format: ReportFormat = None,
    output: Output = None,
    family: Annotated[
        list[str] | None,
        typer.Option(
            "--family",
            metavar="FAMILY",
            help="Only what is about bindings of this family. May be given several times.",
            show_default=False,
        ),
    ] = None,
    code: Annotated[
        bool, typer.Option("--code", help="Text: show how bodies changed; the others always do.")
    ] = False,
    verbose: Annotated[
        bool,
        typer.Option("--verbose", "-v", help="Text: show low risks too, which are only counted."),
    ] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Exit 1 while a step of the checklist is open.")
    ] = False,
    offline: Offline = False,
    quiet: Quiet = False,
) -> None:
    """Show what changed in upstream for this workspace: where it lands, and how risky it is.

    A step of the migration checklist is open while `validate --beyond-claims`
    finds something about it on NEW, or while a body that changed is not locked
    for NEW: run `diff` again to see it ticked off.

    Exit codes: 0 fine, 1 a step is open and --check was given, 2 could not do the job.

    Examples:

      kunlun-adapt diff 0.5.19 0.5.23

      kunlun-adapt diff 0.5.19 0.5.23 --output migration.html

      kunlun-adapt diff 0.5.19 0.5.24 --family moe --code

      kunlun-adapt diff 0.5.19 git:~/sglang@main --check --quiet
    """
    shape = format_for(format, output)
    if output is not None and str(output) == "-":
        output = None
    with cannot():
        if output is not None:
            need_folder(output)  # before the work, not after it
        root, catalog = open_workspace(workspace, quiet=quiet)
        refuse_faulty(catalog)
        # A model that resembles a recipe's is told with the recipe's name.
        also = (*OFFERED, *(recipe.model.name for recipe in catalog.recipes))
        if unknown := unknown_family(family or (), catalog, also):
            raise typer.BadParameter(unknown)
        lock = open_lock(root)
        specs = [named_release(spec) or "" for spec in (old, new)]
        resolvers = [
            FollowingResolver(obtain(spec, offline=offline, quiet=quiet)) for spec in specs
        ]
        if not quiet and _newer(*(resolver.version for resolver in resolvers)):
            remark("OLD is newer than NEW: what is new here went in the other direction")
        versions = " and ".join(resolver.version for resolver in resolvers)
        with working(f"comparing sglang {versions}", quiet=quiet) as progress:
            found = feature_diff(
                catalog,
                lock,
                *resolvers,
                source=specs[1],
                workspace=None if workspace is None else str(workspace),
                progress=progress,
            )
        chosen = found.of_families(family) if family else found
        text = _rendered(chosen, shape, low=verbose, code=code)
        if output is None:
            emit(text)
        else:
            write_whole(output, text)
            if not quiet:
                remark(f"written to {output}: {summary(chosen)}")
    if check and chosen.open_items:
        raise typer.Exit(EXIT_FINDINGS)


def _newer(old: str, new: str) -> bool:
    return Version(old) > Version(new)


def _rendered(found: FeatureDiff, format: Format, *, low: bool, code: bool) -> str:
    if format is Format.JSON:
        return as_json(found.to_json())
    if format is Format.MARKDOWN:
        return render_markdown(found)
    if format is Format.HTML:
        # Imported here: Jinja2 takes longer than all the other formats.
        from kunlun_adapt.evolve.diff.page import render_html

        return render_html(found)
    return render_text(found, low=low, code=code)

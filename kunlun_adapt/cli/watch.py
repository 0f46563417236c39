"""`kunlun-adapt watch`: name the upstream commit that broke each binding."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Annotated

import typer
from packaging.version import InvalidVersion, Version

from kunlun_adapt.cli.common import (
    EXIT_FINDINGS,
    Quiet,
    TextOrJson,
    Workspace,
    as_json,
    cannot,
    emit,
    named_release,
    open_lock,
    open_workspace,
    refuse_faulty,
    working,
)
from kunlun_adapt.cli.validate import FailOn
from kunlun_adapt.diagnostics import Severity
from kunlun_adapt.evolve.watch import Broken, Point, Watched
from kunlun_adapt.evolve.watch import watch as watch_history
from kunlun_adapt.upstream.git_history import Commit

SHORT = 12


def _a_version(given: str | None) -> str | None:
    """Return the version in its normal form. Raises BadParameter for what is none."""
    version = named_release(given)
    try:
        return version and str(Version(version))
    except InvalidVersion as error:
        raise typer.BadParameter(f"{given!r} is no version; 0.5.19 is one") from error


def watch(
    path: Annotated[
        Path,
        typer.Argument(metavar="PATH", help="A clone of SGLang; it may have no work tree."),
    ],
    since: Annotated[
        str,
        typer.Option(
            "--since",
            metavar="REV",
            help="Where to start: a tag, a branch or a commit at which the bindings held.",
            show_default=False,
            callback=named_release,
        ),
    ],
    until: Annotated[
        str, typer.Option("--until", metavar="REV", help="Where to end.", callback=named_release)
    ] = "HEAD",
    version: Annotated[
        str | None,
        typer.Option(
            "--version",
            metavar="VERSION",
            help="The release to take the code for, in a clone without tags.",
            show_default=False,
            callback=_a_version,
        ),
    ] = None,
    workspace: Workspace = None,
    fail_on: Annotated[
        FailOn,
        typer.Option("--fail-on", help="Severity that counts as broken; warnings take longer."),
    ] = FailOn.ERROR,
    format: Annotated[TextOrJson, typer.Option("--format", help="Output.")] = TextOrJson.TEXT,
    quiet: Quiet = False,
) -> None:
    """Name for each binding that upstream broke since REV the commit that broke it.

    Every binding is checked at the end as `validate --beyond-claims` does it, and
    the history of the files in question is halved. Files are read from the clone's
    object store: nothing is checked out, nothing is fetched.

    Exit codes: 0 fine, 1 something is broken, 2 could not do the job.

    Examples:

      kunlun-adapt watch ~/sglang --since v0.5.19

      kunlun-adapt watch ~/sglang --since v0.5.19 --until main --format json

      kunlun-adapt watch ~/sglang --since HEAD~200 --version 0.5.23
    """
    with cannot():
        root, catalog = open_workspace(workspace, quiet=quiet)
        refuse_faulty(catalog)
        severity = fail_on.severity or Severity.ERROR
        with working(f"watching {path}", quiet=quiet) as progress:
            found = watch_history(
                catalog,
                open_lock(root),
                path.expanduser(),
                since,
                until,
                version=version,
                severity=severity,
                progress=progress,
            )
        if format is TextOrJson.JSON:
            emit(as_json({"repository": str(path), **found.to_json()}))
        else:
            emit("".join(f"{line}\n" for line in _text(found)))
    if found.broken and fail_on is not FailOn.NEVER:
        raise typer.Exit(EXIT_FINDINGS)


def _text(found: Watched) -> Iterator[str]:
    yield f"{_point(found.since)} to {_point(found.until)}: {_count(found)}"
    for (before, held, commit, merge), items in groupby(
        found.broken, lambda b: (b.before, b.held, b.commit, b.merge)
    ):
        yield ""
        if commit is not None:
            yield _commit(commit)
            if merge is not None:
                yield f"  came with {_commit(merge)}"
        elif before and found.parted and held:
            ends = f"{found.since.revision} and {found.until.revision}"
            yield f"broken already at {found.parted[:SHORT]}, where {ends} part"
        elif before:
            yield f"broken at {found.since.revision} already"
        else:
            yield (
                "no commit alone shows it (it was broken, mended and broken, lies elsewhere, or in "
                "what a shallow clone lacks)"
            )
        for item in items:
            yield from _item(item)


def _commit(commit: Commit) -> str:
    kind = "merge " if commit.merge else ""
    return f"{kind}{commit.hash[:SHORT]} {commit.date} {commit.author}: {commit.subject}"


def _item(item: Broken) -> Iterator[str]:
    finding = item.finding
    yield f"  {finding.severity.value} {finding.code} {finding.binding or finding.target}"
    yield f"    {finding.message}"
    yield f"    at        {finding.position}"
    if finding.upstream is not None:
        yield f"    upstream  {finding.upstream}"
    if finding.suggestion:
        yield f"    try       {finding.suggestion}"


def _point(point: Point) -> str:
    return f"{point.revision} (sglang {point.release}, {point.commit[:SHORT]})"


def _count(found: Watched) -> str:
    before = sum(item.before for item in found.broken)
    new = len(found.broken) - before
    if not found.broken:
        return "nothing is broken"
    commits = {item.commit.hash for item in found.broken if item.commit}
    parts = []
    if new:
        parts.append(f"{new} broken by {len(commits)} commit{'' if len(commits) == 1 else 's'}")
    if before:
        parts.append(f"{before} broken before")
    return ", ".join(parts)

"""`kunlun-adapt retarget`: carry the workspace to a new SGLang release."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from packaging.version import Version

from kunlun_adapt.cli.common import (
    EXIT_FINDINGS,
    Offline,
    Quiet,
    TextOrJson,
    Workspace,
    as_json,
    as_release,
    cannot,
    emit,
    fail,
    named_release,
    obtain,
    open_lock,
    open_workspace,
    refuse_faulty,
    remark,
    working,
)
from kunlun_adapt.diagnostics import Severity
from kunlun_adapt.documents import in_range
from kunlun_adapt.evolve.retarget import (
    Account,
    Job,
    Releases,
    Retargeted,
    read_texts,
    releases_for,
    write_texts,
)
from kunlun_adapt.evolve.retarget import (
    retarget as carry,
)
from kunlun_adapt.evolve.retarget.report import account_lines, as_body, render
from kunlun_adapt.locate import is_installed
from kunlun_adapt.upstream import ReleaseError, open_release
from kunlun_adapt.upstream.following import FollowingResolver
from kunlun_adapt.upstream.index.ahead import made_ahead


def retarget(
    sglang: Annotated[
        str,
        typer.Argument(
            metavar="NEW",
            help="The release to carry the workspace to: a version, a wheel, a folder, "
            "git:PATH@REV, or 'installed'.",
            callback=named_release,
        ),
    ],
    workspace: Workspace = None,
    apply: Annotated[
        bool,
        typer.Option("--apply", help="Write what is certain without asking; list the rest."),
    ] = False,
    proposals: Annotated[
        bool,
        typer.Option("--proposals", help="Take what is only likely too, as if each was accepted."),
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Write nothing; print the changes as a patch."),
    ] = False,
    format: Annotated[
        TextOrJson, typer.Option("--format", help="Output format.")
    ] = TextOrJson.TEXT,
    claim: Annotated[
        bool,
        typer.Option("--claim", help="Let the map claim the release though findings remain."),
    ] = False,
    lock: Annotated[
        bool, typer.Option("--lock", help="Lock the release afterwards, where it was claimed.")
    ] = False,
    offline: Offline = False,
    quiet: Quiet = False,
) -> None:
    """Find the YAML edits that carry the workspace to a new SGLang release, and make them.

    Each finding of `validate --beyond-claims` is met by the edit that mends it. What is
    certain is applied, what is likely is proposed, the rest is listed; old releases keep
    working, since ranges are split. On a terminal each proposal is shown and asked about.
    Without a terminal and without --apply nothing is written.

    Exit codes: 0 the release is claimed and clean, 1 something is left, 2 could not.

    Examples:

      kunlun-adapt retarget 0.5.24

      kunlun-adapt retarget 0.5.24 --dry-run > retarget.patch

      kunlun-adapt retarget git:../sglang@main --apply --format json
    """
    if dry_run and (apply or lock):
        raise typer.BadParameter("--dry-run writes nothing; leave out --apply and --lock")
    asks = not (apply or dry_run or proposals or format is TextOrJson.JSON) and _terminal()
    with cannot():
        root, catalog = open_workspace(workspace, quiet=quiet)
        refuse_faulty(catalog)
        if (apply or asks) and is_installed(root):
            fail(
                f"{root} belongs to the installed package, and edits are made to your own copy",
                f"cp -r {root} DIR, then kunlun-adapt retarget {sglang} --workspace DIR",
            )
        held, texts = open_lock(root), read_texts(root)
        new = FollowingResolver(obtain(sglang, offline=offline, quiet=quiet))
        if Version(new.version).local:
            fail(
                f"sglang {new.version} is no release, and a range begins and ends at releases only",
                f"name the release that it will be: {as_release(sglang, new.version)}",
            )
        map_ = catalog.platform_map
        claimed = map_.model.sglang if map_ is not None else ""
        releases = releases_for(claimed, held, Version(new.version), _opener(offline, quiet))
        _say_what_is_missing(releases, new.version, claimed, quiet)
        named = None if workspace is None else str(workspace)
        others = [r.version for r in (*releases.known, *releases.between)]
        with (
            made_ahead(others),
            working(f"sglang {new.version}", quiet=quiet or asks) as progress,
        ):
            done = carry(
                Job(
                    root=root,
                    texts=texts,
                    lock=held,
                    known=releases.known,
                    between=releases.between,
                    new=new,
                    choose=_chooser(asks, proposals),
                    claim=claim,
                    tell=_teller(progress),
                    workspace=named,
                )
            )
        if dry_run:
            if not done.patch and not quiet:
                remark("nothing is certain enough to change; without --dry-run the rest is listed")
            emit(done.patch if format is TextOrJson.TEXT else as_json(as_body(done, False)))
        else:
            write = done.patch != "" and (apply or (asks and _confirmed(done)))
            if write:
                write_texts(root, texts, done.texts)
            again = _lock_command(done, sglang, named) if not lock else None
            body: Any = as_body(done, write)
            json = format is TextOrJson.JSON
            emit(as_json(body) if json else render(done, written=write, lock_command=again))
            if lock and write and done.claim[0] != done.claim[1]:
                _lock(sglang, workspace, offline=offline, quiet=quiet)
    if not _clean(done):
        raise typer.Exit(EXIT_FINDINGS)


def _terminal() -> bool:
    return bool(sys.stdin and sys.stdin.isatty() and sys.stdout and sys.stdout.isatty())


def _opener(offline: bool, quiet: bool) -> Callable[[str], FollowingResolver]:
    """Return what opens a release: from the cache where it is there, so that all go quickly."""

    def opened(version: str) -> FollowingResolver:
        try:
            return FollowingResolver(open_release(version, offline=True))
        except ReleaseError:
            if offline:
                raise
        return FollowingResolver(obtain(version, offline=False, quiet=quiet))

    return opened


def _say_what_is_missing(releases: Releases, new: str, claim: str, quiet: bool) -> None:
    if not releases.known and not releases.missed and in_range(claim, new):
        fail(
            f"sglang {new} is claimed already, and no other release is: there is nothing to carry",
            f"kunlun-adapt validate --sglang {new}",
        )
    if not releases.known:
        fail(
            "no claimed release can be read, so nothing tells where a symbol was before",
            "run once without --offline, so that its wheel is fetched",
        )
    if releases.missed and not quiet:
        remark(f"not looked at, since they cannot be had: {', '.join(releases.missed)}")


def _chooser(asks: bool, proposals: bool) -> Callable[[Account], bool]:
    def choose(account: Account) -> bool:
        if not asks:
            return proposals
        typer.echo("\n".join(account_lines(account)))
        return typer.confirm("take this edit?", default=False)

    return choose


def _teller(
    progress: Callable[[str, float | None], None] | None,
) -> Callable[[str], None]:
    return lambda what: None if progress is None else progress(what, None)


def _confirmed(done: Retargeted) -> bool:
    changed = done.patch.count("\n--- a/") + done.patch.startswith("--- a/")
    typer.echo(done.patch)
    return typer.confirm(f"write this to {changed} file(s)?", default=True)


def _lock_command(done: Retargeted, spec: str, workspace: str | None) -> str | None:
    if not in_claim(done):
        return None
    where = ["--workspace", workspace] if workspace else []
    return shlex.join(["kunlun-adapt", "lock", *where, "--sglang", spec])


def in_claim(done: Retargeted) -> bool:
    """Tell whether the map claims the new release now."""
    return in_range(done.claim[1], done.release)


def _lock(spec: str, workspace: Path | None, *, offline: bool, quiet: bool) -> None:
    from kunlun_adapt.cli.lock import lock as lock_command

    lock_command(sglang=[spec], workspace=workspace, check=False, offline=offline, quiet=quiet)


def _clean(done: Retargeted) -> bool:
    errors = any(report.count(Severity.ERROR) for report in done.after)
    open_ = done.counts["left"] or any(not a.taken for a in done.of("proposed"))
    return in_claim(done) and not errors and not open_

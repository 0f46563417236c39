"""`kunlun-adapt lock`: write down what the bindings were verified against."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from kunlun_adapt.cli.common import (
    EXIT_FINDINGS,
    Offline,
    Quiet,
    Workspace,
    cannot,
    default_release,
    fail,
    named_releases,
    obtain,
    open_lock,
    open_workspace,
    refuse_faulty,
    releases_in,
    remark,
    working,
)
from kunlun_adapt.evolve import lock_for, usage_for
from kunlun_adapt.locate import LOCK_FILE, is_installed
from kunlun_adapt.upstream import Lock, LockError, Resolver, write_lock


def lock(
    sglang: Annotated[
        list[str] | None,
        typer.Option(
            "--sglang",
            metavar="RELEASE",
            help="A version, a wheel, a folder, git:PATH@REV, or 'installed'. May be given several "
            "times. "
            "Default: all that the lock holds.",
            show_default=False,
            callback=named_releases,
        ),
    ] = None,
    workspace: Workspace = None,
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; exit 1 when the lock is stale.")
    ] = False,
    offline: Offline = False,
    quiet: Quiet = False,
) -> None:
    """Record paths, signatures and fingerprints of all bound symbols in adapt.lock.

    Other releases in the lock stay as they are. Run `validate` first: the lock
    records what was verified, and refuses a release in which a bound target is missing.

    Examples:

      kunlun-adapt lock --sglang 0.5.17 --sglang 0.5.19 --sglang 0.5.23

      kunlun-adapt lock --check
    """
    with cannot():
        root, catalog = open_workspace(workspace, quiet=quiet)
        path = root / LOCK_FILE
        refuse_faulty(catalog)
        if not check and is_installed(root):
            fail(
                f"{root} belongs to the installed package, and a lock is written to your own copy",
                f"cp -r {root} DIR, then kunlun-adapt lock --workspace DIR",
            )
        held, before = _held(root, anew=bool(sglang) and not check)
        merged = held
        resolvers = []
        for spec in sglang or list(held.releases) or [default_release(catalog, held)]:
            resolver = Resolver(obtain(spec, offline=offline, quiet=quiet))
            fresh, missing = lock_for(catalog, resolver)
            if missing:
                fail(
                    f"sglang {resolver.version}: {len(missing)} bound target(s) are missing, "
                    f"the first is {missing[0].path}",
                    f"kunlun-adapt validate --sglang {spec}",
                )
            merged = merged.replaced(fresh)
            resolvers.append(resolver)
        for resolver in resolvers:
            # Once all releases are in: what is said of one may rest on what another has.
            version = resolver.version
            with working(f"looking at the uses in sglang {version}", quiet=quiet) as progress:
                resolver.progress = progress
                row = usage_for(catalog, resolver, merged, held.usage.get(version))
            merged = merged.with_usage(version, row)
        stale = merged.text() != before
        if check:
            if stale:
                named = [part for spec in sglang or () for part in ("--sglang", spec)]
                hint = shlex.join(["kunlun-adapt", "lock", *named])
                remark(f"{LOCK_FILE} is stale; try: {hint}")
                raise typer.Exit(EXIT_FINDINGS)
        elif stale:
            write_lock(path, merged)
    if not quiet:
        word = "written" if stale else "up to date"
        remark(f"{LOCK_FILE}: {word}; releases {', '.join(merged.releases)}")


def _held(root: Path, *, anew: bool) -> tuple[Lock, str | None]:
    """Return the workspace's lock and its text; `anew` starts from nothing where it is broken.

    Raises LockError, or AdaptError where it is no file.
    """
    try:
        held = open_lock(root)
    except LockError as error:
        if not anew:
            raise
        dropped = ", ".join(releases_in(root / LOCK_FILE))
        remark(f"{error}")
        remark(f"starting from an empty lock; the old one named {dropped or 'no release'}")
        return Lock(), None
    return held, held.text()

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
    emit,
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
from kunlun_adapt.documents import Catalog
from kunlun_adapt.evolve import lock_changes, lock_for, usage_for
from kunlun_adapt.locate import LOCK_FILE, is_installed
from kunlun_adapt.upstream import Lock, LockError, ReleaseError, Resolver, write_lock

MOST = 40
"""So many differences are listed."""


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
    drop: Annotated[
        list[str] | None,
        typer.Option(
            "--drop",
            metavar="VERSION",
            help="Take a release out of the lock. May be given several times.",
            show_default=False,
        ),
    ] = None,
    workspace: Workspace = None,
    check: Annotated[
        bool,
        typer.Option("--check", help="Write nothing; say what differs, and exit 1 if anything."),
    ] = False,
    offline: Offline = False,
    quiet: Quiet = False,
) -> None:
    """Record what upstream is like for all bindings in adapt.lock.

    That is paths, signatures and fingerprints of all bound symbols, what upstream's callers pass,
    and the parts of upstream that a replaced function called. Other releases in the lock stay as
    they are. Run `validate` first: the lock records what was verified, and refuses a release in
    which a bound target is missing.

    Without --sglang, a release that cannot be had again (one that was read from a git revision,
    say) is kept as it stands, and named.

    Exit codes: 0 fine, 1 --check found a difference, 2 could not do the job.

    Examples:

      kunlun-adapt lock --sglang 0.5.17 --sglang 0.5.19 --sglang 0.5.23

      kunlun-adapt lock --check

      kunlun-adapt lock --drop 0.5.17
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
        merged = _without(held, drop or [])
        resolvers, kept = _opened(catalog, merged, sglang, bool(drop), offline, quiet)
        for spec, resolver in resolvers:
            fresh, missing = lock_for(catalog, resolver)
            if missing:
                fail(
                    f"sglang {resolver.version}: {len(missing)} bound target(s) are missing, "
                    f"the first is {missing[0].path}",
                    f"kunlun-adapt validate --sglang {spec}",
                )
            merged = merged.replaced(fresh)
        for _, resolver in resolvers:
            # Once all releases are in: what is said of one may rest on what another has.
            version = resolver.version
            with working(f"looking at the uses in sglang {version}", quiet=quiet) as progress:
                resolver.progress = progress
                row = usage_for(catalog, resolver, merged, held.usage.get(version))
            merged = merged.with_usage(version, row)
        for version, why in kept.items():
            remark(f"sglang {version}: {'not checked' if check else 'kept as it was'}; {why}")
        stale = merged.text() != before
        if check and stale:
            _tell(lock_changes(held, merged))
            named = [part for spec in sglang or () for part in ("--sglang", spec)]
            named += [part for version in drop or () for part in ("--drop", version)]
            hint = shlex.join(["kunlun-adapt", "lock", *named])
            remark(f"{LOCK_FILE} is stale; try: {hint}")
            raise typer.Exit(EXIT_FINDINGS)
        unread = [version for version in kept if not _local(version)]
        if check and unread:
            fail(
                f"{', '.join(unread)} could not be checked, and nothing else is stale",
                f"say where to find it: --sglang PATH, or kunlun-adapt lock --drop {unread[0]}",
            )
        if stale and not check:
            write_lock(path, merged)
    if not quiet:
        word = "written" if stale else "up to date"
        remark(f"{LOCK_FILE}: {word}; releases {', '.join(merged.releases)}")


def _opened(
    catalog: Catalog,
    held: Lock,
    named: list[str] | None,
    dropping: bool,
    offline: bool,
    quiet: bool,
) -> tuple[list[tuple[str, Resolver]], dict[str, str]]:
    """Open the releases to lock; of those that only the lock names, say why some cannot be had.

    Raises ReleaseError where a named one cannot be opened, or none at all.
    """
    if named is None and dropping:
        return [], {}
    if named is not None or not held.releases:
        specs = named or [default_release(catalog, held)]
        return [(s, Resolver(obtain(s, offline=offline, quiet=quiet))) for s in specs], {}
    resolvers: list[tuple[str, Resolver]] = []
    kept: dict[str, str] = {}
    failure: ReleaseError | None = None
    for version in held.releases:
        if _local(version):
            kept[version] = "no index has it: name it again by --sglang git:PATH@REV"
            continue
        try:
            release = obtain(version, offline=offline, quiet=quiet)
        except ReleaseError as error:
            kept[version] = error.message
            failure = error
            continue
        resolvers.append((version, Resolver(release)))
    if failure is not None and not resolvers:
        raise failure
    return resolvers, kept


def _local(version: str) -> bool:
    """Tell whether a version has a local part, which no index serves: a git revision's has."""
    return "+" in version


def _without(held: Lock, dropped: list[str]) -> Lock:
    """Take releases out of a lock. Raises BadParameter for one that is not in it."""
    for version in dropped:
        if version not in held.releases:
            known = ", ".join(held.releases) or "none"
            raise typer.BadParameter(f"{LOCK_FILE} does not hold {version}; it holds {known}")
        held = held.without(version)
    return held


def _tell(lines: list[str]) -> None:
    shown = lines[:MOST] or ["the order of the lines, or their form"]
    more = len(lines) - MOST
    emit("".join(f"{line}\n" for line in [*shown, *([f"and {more} more"] if more > 0 else [])]))


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
    path = root / LOCK_FILE
    # The very text: a merge may leave lines out of order, which the next `lock` puts right.
    return held, path.read_text(encoding="utf-8") if path.exists() else None

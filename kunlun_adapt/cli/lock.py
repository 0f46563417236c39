"""`kunlun-adapt lock`: write down what the bindings were verified against."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console

from kunlun_adapt.cli.common import (
    EXIT_FINDINGS,
    Offline,
    Quiet,
    Releases,
    Workspace,
    cannot,
    default_release,
    fail,
    obtain,
    open_lock,
    open_workspace,
)
from kunlun_adapt.evolve import lock_for
from kunlun_adapt.locate import LOCK_FILE
from kunlun_adapt.upstream import Resolver, write_lock


def lock(
    sglang: Releases = None,
    workspace: Workspace = None,
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; exit 1 when the lock is stale.")
    ] = False,
    offline: Offline = False,
    quiet: Quiet = False,
) -> None:
    """Record paths, signatures and fingerprints of all bound symbols in adapt.lock.

    Without --sglang, the releases that the lock already holds. Run `validate` first: the lock
    records what was verified, and refuses a release in which a bound target is missing.

    Examples:

      kunlun-adapt lock --sglang 0.5.17 --sglang 0.5.19 --sglang 0.5.23

      kunlun-adapt lock --check
    """
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    with cannot():
        root, catalog = open_workspace(workspace)
        if catalog.findings:
            fail(f"the documents have {len(catalog.findings)} finding(s)", "kunlun-adapt validate")
        held = open_lock(root)
        merged = held
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
        stale = merged.text() != held.text()
        if check:
            if stale:
                console.print(f"{LOCK_FILE} is stale; try: kunlun-adapt lock", markup=False)
                raise typer.Exit(EXIT_FINDINGS)
        elif stale:
            write_lock(root / LOCK_FILE, merged)
    if not quiet:
        word = "written" if stale else "up to date"
        console.print(f"{LOCK_FILE}: {word}; releases {', '.join(merged.releases)}", markup=False)

"""`kunlun-adapt serve`: start SGLang with the plugin, on the card or on this CPU."""

from __future__ import annotations

import os
import shlex
import sys
import sysconfig
import tempfile
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from kunlun_adapt.cli.common import (
    EXIT_FINDINGS,
    Workspace,
    cannot,
    emit,
    fail,
    locate_workspace,
    open_lock,
    remark,
    terminal,
    working,
)
from kunlun_adapt.cli.parsing import PassingCommand
from kunlun_adapt.cli.simulated import check_device, simulated_environment
from kunlun_adapt.cli.streams import flush_streams
from kunlun_adapt.diagnostics import AdaptError, ReleaseReport, Severity, render_text
from kunlun_adapt.documents import Catalog, load_catalog
from kunlun_adapt.locate import ENVIRONMENT
from kunlun_adapt.plan import make_plan
from kunlun_adapt.runtime.ledger import RUN, RUN_DIR
from kunlun_adapt.runtime.prepare import UNVERIFIED, Installed, installed_sglang
from kunlun_adapt.runtime.probe import (
    DEVICE,
    SIMULATED,
    SIMULATOR,
    probe_module,
    simulated_profile,
    simulator_asked,
    switched_on,
)
from kunlun_adapt.runtime.runs import read_run
from kunlun_adapt.runtime.selection import ENTRY_POINTS, PLATFORM, check_selection
from kunlun_adapt.upstream import Lock, LockFacts, Resolver, open_release


class Reported(str, Enum):
    """What the simulator can report as the device."""

    CPU = "cpu"
    CUDA = "cuda"


def _named_folder(given: str) -> Path:
    """Return a folder. Raises BadParameter for an empty name, which would be the current one."""
    if not given.strip():
        raise typer.BadParameter(
            "no folder is named; is a variable of the shell unset? Name one, or leave --run-dir out"
        )
    return Path(given)


SETTINGS = {"cls": PassingCommand, "options_metavar": "[OPTIONS] -- SGLANG-ARGUMENTS..."}


def serve(
    context: typer.Context,
    simulator: Annotated[
        bool,
        typer.Option(
            "--simulator",
            help="No card: stand-ins for the vendor operators compute on this CPU. "
            f"The same as {SIMULATOR}=1.",
        ),
    ] = False,
    device: Annotated[
        Reported | None,
        typer.Option(
            "--device",
            help=f"What the simulator reports: cpu, or cuda as a card does. The same as {DEVICE}=…",
            show_default="cpu",
        ),
    ] = None,
    no_validate: Annotated[
        bool,
        typer.Option(
            "--no-validate",
            help="Start at once. What is not in effect still stops the start, as it always does.",
        ),
    ] = False,
    print_env: Annotated[
        bool,
        typer.Option(
            "--print-env",
            help="Start nothing; print what would be set, for a shell to `eval`, so that any "
            "command runs as the server would.",
        ),
    ] = False,
    workspace: Workspace = None,
    run_dir: Annotated[
        Path | None,
        typer.Option(
            "--run-dir",
            metavar="FOLDER",
            help="Where each process keeps its ledger. Nothing in it is removed.",
            envvar=RUN_DIR,
            show_default="a new folder",
            parser=_named_folder,
        ),
    ] = None,
) -> None:
    """Start SGLang's server with kunlun-adapt active; what follows `--` are SGLang's arguments.

    First the documents are checked against the installed SGLang, as `validate` does; errors stop
    the start with exit code 1. Then the process becomes SGLang's launcher: its output, signals and
    exit code are SGLang's.

    Examples:

      kunlun-adapt serve -- --model-path /models/Qwen3-30B-A3B --tp 4

      kunlun-adapt serve --simulator -- --model-path ./tiny --dtype float32 --page-size 16 \
--max-total-tokens 4096

      eval "$(kunlun-adapt serve --simulator --print-env)"; python offline_generate.py
    """
    with cannot():
        root = locate_workspace(workspace)
        simulator = simulator_asked() or simulator
        if device is not None and not simulator:
            fail("--device says what the simulator reports", "add --simulator, or drop --device")
        simulated = SIMULATED[device.value] if device else simulated_profile()
        unverified = switched_on(UNVERIFIED, "tries a release that is not claimed")
        check_device(probe_module(root), simulator)
        _check_choice()
        if run_dir is not None:
            _check_run_dir(run_dir)
        installed = installed_sglang()
        profile = simulated if simulator else "card"
        catalog = load_catalog(root)
        if print_env:
            if context.args:
                fail("--print-env starts nothing", "leave out what follows --")
            settings = _settings(catalog, installed, profile, unverified)
            if run_dir is not None:
                settings[RUN_DIR] = str(run_dir.resolve())
            emit("".join(f"export {k}={shlex.quote(v)}\n" for k, v in settings.items()))
            return
        launcher = _launcher(installed)
        if not no_validate:
            _validate(catalog, installed, unverified, workspace)
        environment = {**os.environ, **_settings(catalog, installed, profile, unverified)}
        folder = run_dir or Path(tempfile.mkdtemp(prefix="kunlun-adapt-run-"))
        folder.mkdir(parents=True, exist_ok=True)
        environment[RUN_DIR] = str(folder.resolve())
        environment.pop(RUN, None)  # a run of its own, also where it is started by another's
        remark(f"kunlun-adapt: ledger in {folder}")
        command = [sys.executable, *launcher, *context.args]
        flush_streams()
        os.execve(sys.executable, command, environment)


_OURS = ENTRY_POINTS["sglang.srt.platforms"][0]


def _check_choice() -> None:
    """Raise AdaptError where the environment asks SGLang for another platform, or half of us."""
    given = os.environ.get(PLATFORM, "")
    if given not in ("", _OURS):
        raise AdaptError(
            f"{PLATFORM}={given} chooses another platform than {_OURS}",
            f"unset {PLATFORM}; to run {given}, start SGLang without kunlun-adapt serve",
        )
    check_selection()


def _launcher(installed: Installed) -> list[str]:
    """Return how the installed release starts a server, for Python's command line.

    Raises AdaptError where it is neither way. `sglang serve` has no module that can be run by
    `-m`, so its script has to be there too.
    """
    package = installed.root / "sglang"
    script = Path(sysconfig.get_path("scripts"), "sglang")
    if (package / "cli" / "serve.py").is_file() and script.is_file():
        return [str(script), "serve"]
    if (package / "launch_server.py").is_file():
        return ["-m", "sglang.launch_server"]
    raise AdaptError(
        f"sglang {installed.version} in {installed.root} has neither `sglang serve` nor "
        "sglang.launch_server",
        "install a release that the map claims",
    )


def _validate(
    catalog: Catalog, installed: Installed, unverified: bool, workspace: Path | None
) -> None:
    """Say what the checks find on the installed release; raise Exit(1) where that is an error.

    A release that is only tried goes on all the same, since what cannot be bound stops it anyway.
    """
    from kunlun_adapt.check import check_release  # `bisect` needs this module, and no checks

    what = f"checking sglang {installed.version}"
    if terminal(sys.stderr) is None:
        remark(f"{what} … (some tens of seconds where the tree differs from the lock)")
    with working(what, quiet=False) as progress:
        report = check_release(
            catalog,
            Resolver(open_release(f"{installed.root}@{installed.version}"), progress=progress),
            lock=open_lock(catalog.root),
            beyond_claims=unverified,
            source="installed",
            workspace=None if workspace is None else str(workspace),
        )
    remark(render_text([report], notes=_verdict(report, unverified), infos=False).rstrip())
    if report.count(Severity.ERROR) and not unverified:
        raise typer.Exit(EXIT_FINDINGS)


def _verdict(report: ReleaseReport, unverified: bool) -> list[str]:
    errors = report.count(Severity.ERROR)
    if not errors:
        return []
    what = f"{errors} error{'s' if errors > 1 else ''}"
    if unverified:
        return [f"kunlun-adapt: {what}; trying it all the same, since {UNVERIFIED}=1"]
    return [
        f"kunlun-adapt: {what}; the start is refused. Mend what is said above, or start with "
        "--no-validate to see what takes effect"
    ]


def _settings(
    catalog: Catalog, installed: Installed, profile: str, unverified: bool
) -> dict[str, str]:
    """Return the variables that make a process of SGLang ours, and say those that may surprise."""
    return {
        **_defaults(catalog, installed, profile, unverified),
        PLATFORM: _OURS,
        ENVIRONMENT: str(catalog.root.resolve()),
        **(simulated_environment(profile) if profile in SIMULATED.values() else {}),
    }


def _defaults(
    catalog: Catalog, installed: Installed, profile: str, unverified: bool
) -> Mapping[str, str]:
    """Return the map's environment defaults that the user has not set, and say which they are."""
    if catalog.findings:
        return {}  # every process refuses such documents
    facts = LockFacts(Lock(), installed.version)  # nothing of upstream is needed for these
    plan = make_plan(catalog, facts, profile, beyond_claims=unverified)
    taken: dict[str, str] = {}
    for variable in plan.environment:
        name, default = variable.name, str(variable.default)
        own = os.environ.get(name)
        if own is None:
            taken[name] = default
            remark(f"kunlun-adapt: sets {name}={default}: {variable.why}")
        elif own != default:
            remark(f"kunlun-adapt: keeps {name}={own} as it is set, in place of {default}")
    return taken


def _check_run_dir(folder: Path) -> None:
    """Raise AdaptError where no ledger can be kept, or one would be written over another file.

    Ledgers of earlier runs stay: each says which run it is of, and `status` tells them apart.
    """
    place = folder.absolute()
    while not os.path.lexists(place):  # what is not there yet is made when all else is well
        place = place.parent
    try:
        with tempfile.TemporaryFile(dir=place):  # a right to write is no proof of it
            pass
        unreadable = read_run(folder).unreadable if folder.is_dir() else ()
    except OSError as error:
        raise AdaptError(
            f"no ledger can be kept in {folder}: {place}: {error.strerror or error}",
            "name a folder that can be written to with --run-dir; without it and without "
            f"{RUN_DIR} a new one is made",
        ) from error
    for file in unreadable:
        if file.file.endswith(".json"):
            raise AdaptError(
                f"{folder / file.file} has the name of a ledger and is none of this version: "
                f"{file.why}",
                "name a folder that is for ledgers only, such as --run-dir runs/1",
            )

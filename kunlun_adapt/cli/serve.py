"""`kunlun-adapt serve`: start SGLang with the plugin, on the card or on this CPU."""

from __future__ import annotations

import importlib.util
import os
import sys
import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from kunlun_adapt.cli.common import Workspace, cannot, fail, locate_workspace, remark
from kunlun_adapt.locate import ENVIRONMENT
from kunlun_adapt.runtime.ledger import RUN, RUN_DIR
from kunlun_adapt.runtime.probe import SIMULATOR, is_installed, probe_module, simulator_asked


class ServeCommand(TyperCommand):
    """Takes our own options before `--` and nothing else; what follows is SGLang's, untouched.

    Were unknown options passed on, a misspelt `--simulator` would start a server without it.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Keep what follows the first `--` in `ctx.args`. Raises UsageError for the unknown."""
        cut = args.index("--") if "--" in args else len(args)
        super().parse_args(ctx, args[:cut])
        ctx.args = args[cut + 1 :]
        return list(ctx.args)


SETTINGS = {"cls": ServeCommand, "options_metavar": "[OPTIONS] -- SGLANG-ARGUMENTS..."}


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
    workspace: Workspace = None,
    run_dir: Annotated[
        Path | None,
        typer.Option(
            "--run-dir",
            help="Where each process keeps its ledger.",
            envvar=RUN_DIR,
            show_default="a new folder",
        ),
    ] = None,
) -> None:
    """Start SGLang's server with kunlun-adapt active; what follows `--` are SGLang's arguments.

    The process becomes SGLang's launcher: its output, signals and exit code are SGLang's.

    Examples:

      kunlun-adapt serve -- --model-path /models/Qwen3-30B-A3B --tp 4

      kunlun-adapt serve --simulator -- --model-path ./tiny --dtype float32 --page-size 16 \
--max-total-tokens 4096
    """
    with cannot():
        root = locate_workspace(workspace)
        simulator = simulator_asked() or simulator
        module = probe_module(root)
        if not simulator and not is_installed(module):
            fail(f"no card here ({module} is not installed)", "use --simulator")
        if simulator and is_installed(module):
            fail(
                f"both a card and the simulator: {module} is installed",
                f"drop --simulator (or unset {SIMULATOR}) to run on the card",
            )
        if importlib.util.find_spec("sglang") is None:
            fail("SGLang is not installed here", "pip install sglang, or see the README")
        environment = {**os.environ, "SGLANG_PLATFORM": "kunlun", ENVIRONMENT: str(root.resolve())}
        if simulator:
            environment.update(_simulated())
        folder = run_dir or Path(tempfile.mkdtemp(prefix="kunlun-adapt-run-"))
        folder.mkdir(parents=True, exist_ok=True)
        _forget_last_run(folder)
        environment[RUN_DIR] = str(folder.resolve())
        environment.pop(RUN, None)  # a run of its own, also where it is started by another's
        remark(f"kunlun-adapt: ledger in {folder}")
        command = [sys.executable, "-m", "sglang.launch_server", *context.args]
        os.execve(sys.executable, command, environment)


def _forget_last_run(folder: Path) -> None:
    """Remove the ledgers of an earlier run, which would be counted as this one's."""
    for path in (*folder.glob("*.json"), *folder.glob("*.part")):
        if path.stem.isdigit():
            path.unlink()


def _simulated() -> dict[str, str]:
    from kunlun_adapt import simulator

    remark("kunlun-adapt: SIMULATOR: no Kunlun card is used; vendor operators are stand-ins")
    paths = [*simulator.standin_paths(), os.environ.get("PYTHONPATH", "")]
    return {
        SIMULATOR: "1",
        "PYTHONPATH": os.pathsep.join(p for p in paths if p),
    }

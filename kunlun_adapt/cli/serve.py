"""`kunlun-adapt serve`: start SGLang with the plugin, on the card or on this CPU."""

from __future__ import annotations

import importlib.util
import os
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from kunlun_adapt.cli.common import Workspace, cannot, fail
from kunlun_adapt.locate import ENVIRONMENT, find_workspace

RUN_DIR = "KUNLUN_ADAPT_RUN_DIR"


def serve(
    context: typer.Context,
    simulator: Annotated[
        bool,
        typer.Option(
            "--simulator", help="No card: stand-ins for the vendor operators compute on this CPU."
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
    """Start SGLang's server with kunlun-adapt active; arguments after `--` are SGLang's own.

    The process becomes SGLang's launcher: its output, signals and exit code are SGLang's.

    Examples:

      kunlun-adapt serve -- --model-path /models/Qwen3-30B-A3B --tp 4

      kunlun-adapt serve --simulator -- --model-path ./tiny --dtype float32 --page-size 16 \
--max-total-tokens 4096
    """
    with cannot():
        root = find_workspace(workspace)
        if importlib.util.find_spec("sglang") is None:
            fail("SGLang is not installed here", "pip install sglang, or see the README")
        folder = run_dir or Path(tempfile.mkdtemp(prefix="kunlun-adapt-run-"))
        folder.mkdir(parents=True, exist_ok=True)
        environment = {
            **os.environ,
            "SGLANG_PLATFORM": "kunlun",
            RUN_DIR: str(folder.resolve()),
            ENVIRONMENT: str(root.resolve()),
        }
        if simulator:
            environment.update(_simulated())
    print(f"kunlun-adapt: ledger in {folder}", file=sys.stderr, flush=True)
    command = [sys.executable, "-m", "sglang.launch_server", *context.args]
    os.execve(sys.executable, command, environment)


def _simulated() -> dict[str, str]:
    from kunlun_adapt import simulator

    print(
        "kunlun-adapt: SIMULATOR: no Kunlun card is used; vendor operators are stand-ins",
        file=sys.stderr,
    )
    paths = [*simulator.standin_paths(), os.environ.get("PYTHONPATH", "")]
    return {
        "KUNLUN_ADAPT_SIMULATOR": "1",
        "PYTHONPATH": os.pathsep.join(p for p in paths if p),
    }

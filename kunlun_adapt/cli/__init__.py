"""The command line: one file per command."""

from __future__ import annotations

import gc
import sys
from importlib import import_module
from typing import Annotated, Any

import typer

from kunlun_adapt import __version__
from kunlun_adapt.cli.parsing import Command
from kunlun_adapt.cli.streams import prepare_streams

__all__ = ["app", "main"]

COMMANDS = (
    "validate",
    "render",
    "list",
    "explain",
    "lock",
    "diff",
    "retarget",
    "matrix",
    "adopt",
    "watch",
    "schema",
    "serve",
    "status",
    "bisect",
)
_ELSEWHERE = {"list": ("listing", "list_")}
"""Commands whose module or function is not called as they are."""


def make_app(names: tuple[str, ...] = COMMANDS) -> typer.Typer:
    """Return the command line with these commands; what the others need is not imported."""
    made = typer.Typer(
        name="kunlun-adapt",
        help="Keep a Kunlun XPU plugin alive on a fast-moving SGLang.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    made.callback()(_options)
    for name in names:
        module, function = _ELSEWHERE.get(name, (name, name))
        commands = import_module(f"{__name__}.{module}")
        settings = {"cls": Command, **getattr(commands, "SETTINGS", {})}
        made.command(name=name, **settings)(getattr(commands, function))
    return made


def __getattr__(name: str) -> Any:
    """Make the whole command line when it is asked for."""
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()["app"] = whole = make_app()
    return whole


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"kunlun-adapt {__version__}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Keep a Kunlun XPU plugin alive on a fast-moving SGLang."""


def main() -> None:
    """Run the command line; an internal error ends with exit code 2, as every command says."""
    prepare_streams()
    try:
        # A run makes many objects that stay and hardly a cycle: looking for those often is waste.
        gc.set_threshold(50_000, 20, 100)
        # Importing all commands takes longer than running most of them.
        named = sys.argv[1:2]
        make_app(tuple(named) if named and named[0] in COMMANDS else COMMANDS)()
    except Exception as error:
        print(
            f"error: internal: {type(error).__name__}: {error}\n"
            "  try: report it, with the traceback that KUNLUN_ADAPT_TRACEBACK=1 prints",
            file=sys.stderr,
        )
        import os

        if os.environ.get("KUNLUN_ADAPT_TRACEBACK") == "1":
            raise
        sys.exit(2)
    finally:
        # Nor does it pay to look for them on the way out, when the system takes everything back.
        gc.freeze()

"""The command line: one file per command."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from kunlun_adapt import __version__
from kunlun_adapt.cli.explain import explain
from kunlun_adapt.cli.listing import list_
from kunlun_adapt.cli.lock import lock
from kunlun_adapt.cli.render import render
from kunlun_adapt.cli.schema import schema
from kunlun_adapt.cli.serve import ServeCommand, serve
from kunlun_adapt.cli.validate import validate

__all__ = ["app", "main"]

app = typer.Typer(
    name="kunlun-adapt",
    help="Keep a Kunlun XPU plugin alive on a fast-moving SGLang.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"kunlun-adapt {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Keep a Kunlun XPU plugin alive on a fast-moving SGLang."""


app.command()(validate)
app.command()(render)
app.command(name="list")(list_)
app.command()(explain)
app.command()(lock)
app.command()(schema)
app.command(cls=ServeCommand, options_metavar="[OPTIONS] -- SGLANG-ARGUMENTS...")(serve)


def main() -> None:
    """Run the command line; an internal error ends with exit code 2, as every command says."""
    try:
        app()
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

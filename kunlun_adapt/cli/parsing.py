"""How commands take what the user typed, and say what is wrong with it."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperCommand

# Which module has it depends on typer's version; that BadParameter is one does not.
_USAGE_ERROR: Any = typer.BadParameter.__mro__[1]


class Command(TyperCommand):
    """Says what is wrong with a value in words that are about the value."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse. Raises UsageError for what is not to be understood."""
        try:
            return super().parse_args(ctx, args)
        except typer.BadParameter as error:
            # pydantic's, which typer takes for values where it is there.
            error.message = error.message.removeprefix("Value error, ")
            raise


class PassingCommand(Command):
    """Takes our own options before `--` and nothing else; what follows is handed on, untouched.

    Were unknown options passed on, a misspelt `--simulator` would start a server without it.
    """

    passed = "SGLang's arguments come"

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Keep what follows the first `--` in `ctx.args`. Raises UsageError for the unknown."""
        cut = args.index("--") if "--" in args else len(args)
        try:
            super().parse_args(ctx, args[:cut])
        except _USAGE_ERROR as error:
            # An unknown option, or (which has no class of its own) a word that no option takes.
            if type(error) is _USAGE_ERROR or type(error).__name__ == "NoSuchOption":
                error.message = f"{error.message.rstrip('.')}. {self.passed} after --."
            raise
        ctx.args = args[cut + 1 :]
        return list(ctx.args)

"""What the benchmarks take on their command lines."""

from __future__ import annotations

import argparse
from collections.abc import Callable


def parser(description: str | None) -> argparse.ArgumentParser:
    """Return a parser whose help is the script's own description, as it is written there."""
    return argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )


def at_least(least: int) -> Callable[[str], int]:
    """Return what reads a number that must not be lower, for argparse."""

    def number(text: str) -> int:
        if not text.isascii() or not text.isdigit() or int(text) < least:
            raise argparse.ArgumentTypeError(f"{text!r} is no number of at least {least}")
        return int(text)

    return number

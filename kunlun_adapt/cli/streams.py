"""What the command line prints to: pipes whose reader may leave, and streams that are closed."""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

# What a terminal may take for an order, but for the end of a line.
_ORDERS = {n: f"\\x{n:02x}" for n in (*range(32), *range(127, 160)) if chr(n) != "\n"}
_ORDERS[ord("\t")] = "\t"


def harmless(text: str) -> str:
    """Return text that others wrote with its control characters spelt out, for a terminal."""
    return text.translate(_ORDERS)


class _Pipe(io.FileIO):
    """Drops what nobody reads: a command ends as it would have, with its own exit code."""

    def write(self, data: ReadableBuffer, /) -> int:
        """Write, or take all of it for written where the reader has gone."""
        try:
            return super().write(data)
        except BrokenPipeError:
            return memoryview(data).nbytes


def prepare_streams() -> None:
    """Let `kunlun-adapt … | head -1` end quietly, and a closed stderr lose only its remarks.

    A closed stdout stays None: `emit` refuses to lose a result.
    """
    if sys.stdout is not None:
        sys.stdout = _tolerant(sys.stdout)
    # Without one, print would take stdout instead.
    sys.stderr = io.StringIO() if sys.stderr is None else _tolerant(sys.stderr)


def flush_streams() -> None:
    """Write out what has been said, before the process becomes another."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()


def _tolerant(stream: TextIO) -> TextIO:
    # Not what a test or an embedding program has put in its place.
    if stream not in (sys.__stdout__, sys.__stderr__):
        return stream
    raw = _Pipe(stream.fileno(), "w", closefd=False)
    # Python says under PYTHONUNBUFFERED that nothing is held back, and then that no line is.
    by_line = getattr(stream, "line_buffering", False) or getattr(stream, "write_through", False)
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=stream.encoding,
        errors=stream.errors,
        line_buffering=by_line,
    )

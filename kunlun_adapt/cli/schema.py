"""`kunlun-adapt schema`: the JSON Schema of a kind of document."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from kunlun_adapt.cli.common import Quiet, cannot, emit, remark
from kunlun_adapt.cli.writing import write_whole
from kunlun_adapt.diagnostics import AdaptError
from kunlun_adapt.documents import KINDS
from kunlun_adapt.documents.schema import kind_named, schema_file, schema_text


def schema(
    kind: Annotated[
        str, typer.Argument(help=f"One of {', '.join(KINDS)}, in any case or as platform-map.")
    ],
    out: Annotated[
        # A path of its own would forget the slash at the end.
        str | None,
        typer.Option(
            "--out",
            metavar="FILE",
            help="Write it to a file, or into a folder: `DIR/` is made where it is missing.",
            show_default=False,
        ),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Print the JSON Schema (draft 2020-12) by which editors complete and check a document.

    Exit codes: 0 done, 2 no such kind, or the file cannot be written.

    Examples:

      kunlun-adapt schema PlatformMap

      kunlun-adapt schema operator-recipe --out schemas/
    """
    with cannot():
        known = kind_named(kind)
        if known is None:
            raise AdaptError(f"no document is of the kind {kind!r}", f"one of {', '.join(KINDS)}")
        text = schema_text(known)
        if out is None:
            emit(text)
            return
        path = Path(out)
        if out.endswith(("/", os.sep)):
            path.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            path /= schema_file(known)
        write_whole(path, text)
        if not quiet:
            remark(f"wrote {path}")

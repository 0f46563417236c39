"""Names in a row, as the reports of changes have them."""

from __future__ import annotations

from collections.abc import Sequence

SHOWN = 4
"""Names that are listed; of more, the number."""


def listed(names: Sequence[str]) -> str:
    """Return some names in a row, the rest as a number."""
    rest = len(names) - SHOWN
    shown = ", ".join(names[:SHOWN])
    return f"{shown} and {rest} more" if rest > 0 else shown

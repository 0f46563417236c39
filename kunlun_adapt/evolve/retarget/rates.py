"""How often each kind of edit was right: measured on real releases, kept as data beside this."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from math import sqrt
from pathlib import Path
from typing import Any, Literal

FILE = Path(__file__).with_name("rates.json")
TELLING = ("same body", "similar body", "no body")
CERTAIN = 0.95
LIKELY = 0.5
Z = 1.96
"""Of the interval that holds the true rate in 95 cases of 100."""

Class = Literal["certain", "likely", "open"]


@dataclass(frozen=True, slots=True)
class Rate:
    """How many labelled cases of a kind were right, and how many wrong."""

    kind: str
    right: int
    wrong: int

    @property
    def low(self) -> float:
        """The rate that may be counted on: the lower end of Wilson's interval."""
        n = self.right + self.wrong
        if not n:
            return 0.0
        share = self.right / n
        middle = share + Z * Z / (2 * n)
        spread = Z * sqrt(share * (1 - share) / n + Z * Z / (4 * n * n))
        return (middle - spread) / (1 + Z * Z / n)

    @property
    def is_certain(self) -> bool:
        """Whether it may be applied unseen: nothing was ever wrong, in enough cases to say so."""
        return self.wrong == 0 and self.low >= CERTAIN

    @property
    def is_likely(self) -> bool:
        return self.low >= LIKELY

    @property
    def text(self) -> str:
        """The rate in words."""
        n = self.right + self.wrong
        return f"right in {self.right} of {n} measured cases" if n else "never measured"


@cache
def measured() -> dict[str, Any]:
    """Return the table with how it was measured."""
    if not FILE.is_file():
        return {"rates": {}}
    table: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return table


def rate_of(group: str, kind: str) -> Rate:
    """Return the measured rate of a kind of case; of one that was never seen, none at all."""
    rows = measured()["rates"].get(group, {})
    alike = [row for detail, row in rows.items() if coarse(detail) == coarse(kind)]
    return Rate(coarse(kind), sum(row[0] for row in alike), sum(row[1] for row in alike))


def coarse(kind: str) -> str:
    """Return the kind of case without the parameters where the body says more than they do.

    The table holds the cases apart; too few of each would be left to say how sure they are.
    """
    parts = kind.split("; ")
    if len(parts) > 2 and parts[1] in TELLING:
        del parts[2]
    return "; ".join(parts)

"""An edit of the documents: what is said of it, and the changes that carry it out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

Path = tuple[str | int, ...]

Kind = Literal[
    "moved",
    "defined",
    "inherited",
    "parameters",
    "renamed_parameter",
    "dropped_argument",
    "spelled",
    "left_out",
    "process",
]
"""What an edit rests on: how sure it is depends on that."""


@dataclass(frozen=True, slots=True)
class EntryChange:
    """Other values of an entry in the checked release; a value of None takes the key away.

    `path` leads to the entry inside its document, the `document`-th of the file.
    """

    file: str
    document: int
    path: Path
    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ItemChange:
    """A further item of the list at `path`, which is made where there is none."""

    file: str
    document: int
    path: Path
    item: Mapping[str, Any]


Change = EntryChange | ItemChange


@dataclass(frozen=True, slots=True)
class Mend:
    """What to do about a finding, in words and as changes of the documents.

    Without changes only the words are there: a person has to find them. `asks` names what a person
    has to decide before the changes are right.
    """

    text: str
    kind: Kind | None = None
    changes: tuple[Change, ...] = field(default=(), repr=False)
    asks: tuple[str, ...] = ()

    def saying(self, text: str) -> Mend:
        """Return the same changes under other words."""
        return replace(self, text=text)

"""What the matrix says: how each binding stands in each release."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from enum import Enum

from kunlun_adapt.diagnostics import Finding
from kunlun_adapt.plan.binding import Kind, Status


class State(str, Enum):
    """How a binding stands in a release. Of those that fit, the last one here is said."""

    HOLDS = "holds"
    CHANGED = "changed"
    MOVED = "moved"
    PLANNED = "planned"
    EXCLUDED = "excluded"
    BROKEN = "broken"


MEANING = {
    State.HOLDS: "bound, no error, and all as it was",
    State.CHANGED: "bound, no error, and upstream's symbol is not what it was",
    State.MOVED: "bound, no error, and the documents name another target than before",
    State.PLANNED: "its claims hold, and its implementation is still to come",
    State.EXCLUDED: "left out of this release",
    State.BROKEN: "validate finds an error about it",
}
WORKING = (State.HOLDS, State.CHANGED, State.MOVED)
"""The states of a binding that is bound and free of errors."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One binding in one release.

    `since` is the release of the table that it was compared with, "" where it stood in none before;
    `changes` say in what it differs from there, and from what the lock has of this release.
    """

    state: State
    status: Status
    claimed: bool
    target: str
    since: str = ""
    changes: tuple[str, ...] = ()
    why: str = ""
    codes: tuple[str, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """What there is to say beside the state."""
        told = (self.why,) if self.why else ()
        return (*self.codes, *told, *self.changes)

    def to_json(self) -> dict[str, object]:
        return {
            "state": self.state.value,
            "status": self.status,
            "claimed": self.claimed,
            "target": self.target,
            "since": self.since or None,
            "changes": list(self.changes),
            "why": self.why or None,
            "codes": list(self.codes),
        }


@dataclass(frozen=True, slots=True)
class Row:
    """One binding; it has a cell for each column, in the same order."""

    id: str
    kind: Kind
    family: str
    claims: str
    file: str
    line: int
    cells: tuple[Cell, ...]

    @property
    def states(self) -> tuple[State, ...]:
        """The states that it is in anywhere, in their order."""
        found = {cell.state for cell in self.cells}
        return tuple(state for state in State if state in found)


@dataclass(frozen=True, slots=True)
class Column:
    """One release: `source` is how the user named it, `errors` all that validate finds.

    `shut` says why nothing can be bound in it, "" where something can.
    """

    release: str
    source: str
    claimed: bool
    errors: tuple[Finding, ...] = ()
    shut: str = ""


@dataclass(frozen=True, slots=True)
class Matrix:
    """The whole table: columns by version, rows by family and then in the documents' order."""

    claim: str
    beyond_claims: bool
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]

    @property
    def families(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(row.family for row in self.rows))

    @property
    def broken(self) -> bool:
        """Whether something that is claimed is broken."""
        cells = (cell for row in self.rows for cell in row.cells)
        return any(cell.claimed and cell.state is State.BROKEN for cell in cells) or any(
            column.claimed and self.elsewhere(index) for index, column in enumerate(self.columns)
        )

    def of(self, family: str) -> tuple[Row, ...]:
        return tuple(row for row in self.rows if row.family == family)

    def only(self, families: Collection[str], states: Collection[State]) -> Matrix:
        """Keep the rows of some families, and those that are anywhere in one of some states.

        Nothing given keeps all. What is broken elsewhere stays with the columns.
        """
        rows = (
            row
            for row in self.rows
            if (not families or row.family in families)
            and (not states or any(state in row.states for state in states))
        )
        return replace(self, rows=tuple(rows))

    def elsewhere(self, index: int) -> tuple[Finding, ...]:
        """Return the errors in a column that are about no binding of the workspace."""
        return tuple(f for f in self.columns[index].errors if f.binding is None)


def states_in(rows: Iterable[Row], index: int) -> dict[State, int]:
    """Count the states of some rows in one column."""
    found = [row.cells[index].state for row in rows]
    return {state: found.count(state) for state in State}


def bindings_in(rows: Iterable[Row], index: int) -> dict[Status, int]:
    """Count some rows in one column as `validate` does, whatever is wrong with them."""
    found = [row.cells[index].status for row in rows]
    names: tuple[Status, ...] = ("bound", "planned", "excluded")
    return {name: found.count(name) for name in names}

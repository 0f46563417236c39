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
    def standing(self) -> tuple[str, ...]:
        """Why it is in its state, whatever came before."""
        return (*self.codes, self.why) if self.why else self.codes

    @property
    def notes(self) -> tuple[str, ...]:
        """What there is to say beside the state."""
        return (*self.standing, *self.changes)

    def to_json(self, release: str) -> dict[str, object]:
        return {
            "release": release,
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

    An error about what is no binding of the workspace names none. `claiming` are the bindings whose
    errors count; `shut` says why nothing can be bound in the release, "" where something can.
    """

    release: str
    source: str
    claimed: bool
    errors: tuple[Finding, ...] = ()
    claiming: frozenset[str] = frozenset()
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
        """Whether something that is claimed is broken, shown or not."""
        return any(
            column.claimed and (error.binding is None or error.binding in column.claiming)
            for column in self.columns
            for error in column.errors
        )

    def of(self, family: str) -> tuple[Row, ...]:
        return tuple(row for row in self.rows if row.family == family)

    def only(self, families: Collection[str], states: Collection[State]) -> Matrix:
        """Keep the rows of some families, and those that are anywhere in one of some states.

        Nothing given keeps all. Errors about other families go; states only choose what is shown.
        """
        kept = [row for row in self.rows if not families or row.family in families]
        ids = {None, *(row.id for row in kept)}
        columns = (
            replace(column, errors=tuple(f for f in column.errors if f.binding in ids))
            for column in self.columns
        )
        rows = (row for row in kept if not states or any(state in row.states for state in states))
        return replace(self, columns=tuple(columns), rows=tuple(rows))

    def to_json(self, *, counts: bool = False) -> dict[str, object]:
        """Return the shape that `matrix --format json` publishes, without rows for `counts`."""
        body: dict[str, object] = {
            "claim": self.claim,
            "beyond_claims": self.beyond_claims,
            "broken": self.broken,
            "releases": [self._column_json(index) for index in range(len(self.columns))],
        }
        return body if counts else {**body, "bindings": [self._row_json(row) for row in self.rows]}

    def _column_json(self, index: int) -> dict[str, object]:
        column = self.columns[index]
        return {
            "release": column.release,
            "source": column.source,
            "claimed": column.claimed,
            "shut": column.shut or None,
            "bindings": bindings_in(self.rows, index),
            "states": _named(states_in(self.rows, index)),
            "families": {f: _named(states_in(self.of(f), index)) for f in self.families},
            "errors": [finding.to_json() for finding in column.errors],
        }

    def _row_json(self, row: Row) -> dict[str, object]:
        return {
            "id": row.id,
            "kind": row.kind,
            "family": row.family,
            "claims": row.claims,
            "file": row.file,
            "line": row.line,
            "cells": [
                cell.to_json(column.release)
                for cell, column in zip(row.cells, self.columns, strict=True)
            ],
        }


def states_in(rows: Iterable[Row], index: int) -> dict[State, int]:
    """Count the states of some rows in one column."""
    found = [row.cells[index].state for row in rows]
    return {state: found.count(state) for state in State}


def bindings_in(rows: Iterable[Row], index: int) -> dict[Status, int]:
    """Count some rows in one column as `validate` does, whatever is wrong with them."""
    found = [row.cells[index].status for row in rows]
    names: tuple[Status, ...] = ("bound", "planned", "excluded")
    return {name: found.count(name) for name in names}


def _named(counts: dict[State, int]) -> dict[str, int]:
    return {state.value: count for state, count in counts.items()}

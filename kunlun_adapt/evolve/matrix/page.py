"""The matrix as one HTML page: a heat map that can be filtered."""

from __future__ import annotations

from pathlib import Path

from kunlun_adapt.evolve.matrix.records import MEANING, WORKING, Matrix, Row, State, states_in
from kunlun_adapt.evolve.matrix.text import broken_lines, column_names, share, summary
from kunlun_adapt.evolve.page import render_page

_STEPS = 5
"""Shades of a family's cell: the more of it works, the fuller."""


def render_html(matrix: Matrix) -> str:
    """Return the page. What upstream and the documents say is escaped, and cannot run."""
    columns = range(len(matrix.columns))
    return render_page(
        Path(__file__).parent,
        matrix=matrix,
        summary=summary(matrix),
        names=column_names(matrix),
        states=[state.value for state in State],
        meaning={state.value: text for state, text in MEANING.items()},
        totals={
            state.value: [states_in(matrix.rows, index)[state] for index in columns]
            for state in State
        },
        shares={
            family: [_heat(matrix.of(family), index) for index in columns]
            for family in matrix.families
        },
        broken=_broken(matrix),
    )


def _broken(matrix: Matrix) -> list[tuple[str, str]]:
    """Return each error, and the id of the row that it leads to, "" where none is shown."""
    shown = {row.id for row in matrix.rows}
    return [(line, id if id in shown else "") for line, id in broken_lines(matrix)]


def _heat(rows: tuple[Row, ...], index: int) -> tuple[str, str]:
    """Return what a family's cell says, and its shade."""
    counts = states_in(rows, index)
    if counts[State.BROKEN]:
        return share(rows, index), State.BROKEN.value
    working = sum(counts[state] for state in WORKING)
    return share(rows, index), f"heat{-(-working * _STEPS // len(rows))}"

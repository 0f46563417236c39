"""The matrix as plain text and as Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kunlun_adapt.diagnostics.report import aligned, one_line
from kunlun_adapt.evolve.markdown import code, plain
from kunlun_adapt.evolve.matrix.records import (
    WORKING,
    Matrix,
    Row,
    State,
    bindings_in,
    states_in,
)

Table = list[list[str]]


def render_text(matrix: Matrix, *, verbose: bool = False) -> str:
    """Return the table by family, the counts by family and in all, and what is broken.

    `verbose` adds below each binding what its cells have to say.
    """
    wide = max((len(row.id) for row in matrix.rows), default=0) + 2
    lines: list[str] = []
    # One alignment for all families: a column is read from top to bottom.
    head = [" " * wide, *column_names(matrix)]
    table: Table = [head]
    for family in matrix.families:
        table.append([family, *("" for _ in matrix.columns)])
        table += ([f"  {row.id}", *_states(row)] for row in matrix.of(family))
    shown = _left(table)
    rows = {f"  {row.id}": row for row in matrix.rows}
    for cells, line in zip(table, shown, strict=True):
        lines.append(one_line(line))
        row = rows.get(cells[0])
        if verbose and row is not None:
            lines += (one_line(f"      {told}") for told in _notes(matrix, row))
    lines += ["", *map(one_line, _left(family_table(matrix))), "", *aligned(total_table(matrix))]
    broken = [one_line(line) for line, _ in broken_lines(matrix)]
    lines += ["", *broken] if broken else []
    lines += ["", summary(matrix)]
    return "\n".join(lines).lstrip("\n") + "\n"


def render_markdown(matrix: Matrix) -> str:
    """Return the counts, then a table for each family, then what is broken."""
    lines = ["# Bindings by release", "", f"{plain(summary(matrix))}.", ""]
    lines += [*_pipes(total_table(matrix)), "", *_pipes(family_table(matrix))]
    for family in matrix.families:
        table = [["binding", *column_names(matrix)]]
        table += ([code(row.id), *_states(row)] for row in matrix.of(family))
        lines += ["", f"## {plain(family)}", "", *_pipes(table, done=True)]
    broken = [f"- {plain(line)}" for line, _ in broken_lines(matrix)]
    lines += ["", "## Broken", "", *broken] if broken else []
    return "\n".join(lines) + "\n"


def counts_text(matrix: Matrix) -> str:
    """Return how many bindings are bound, planned and left out in each release."""
    return "".join(f"{line}\n" for line in aligned(counts_table(matrix)))


def counts_markdown(matrix: Matrix) -> str:
    """Return the same as a table for a page."""
    return "".join(f"{line}\n" for line in _pipes(counts_table(matrix)))


def counts_table(matrix: Matrix) -> Table:
    table = [["release", "bound", "planned", "excluded", "broken"]]
    for index, name in enumerate(column_names(matrix)):
        numbers = bindings_in(matrix.rows, index)
        broken = states_in(matrix.rows, index)[State.BROKEN]
        table.append([name, *map(str, (*numbers.values(), broken))])
    return table


def total_table(matrix: Matrix) -> Table:
    """How many bindings are in each state, release by release."""
    table = [["", *column_names(matrix)]]
    counts = [states_in(matrix.rows, index) for index in range(len(matrix.columns))]
    table += ([state.value, *(str(c[state]) for c in counts)] for state in State)
    table.append(["total", *(str(len(matrix.rows)) for _ in counts)])
    return table


def family_table(matrix: Matrix) -> Table:
    """How many of each family's bindings are bound and free of errors, release by release."""
    table = [["family", *column_names(matrix)]]
    for family in matrix.families:
        rows = matrix.of(family)
        table.append([family, *(share(rows, index) for index in range(len(matrix.columns)))])
    return table


def share(rows: Sequence[Row], index: int) -> str:
    """Say how many of some rows work in a column, and how many are broken there."""
    counts = states_in(rows, index)
    broken = counts[State.BROKEN]
    working = sum(counts[state] for state in WORKING)
    return f"{working} of {len(rows)}{f', {broken} broken' if broken else ''}"


def summary(matrix: Matrix) -> str:
    """Say in one line what was looked at, and whether something claimed is broken."""
    names = [column.release for column in matrix.columns]
    broken = sum(len(column.errors) for column in matrix.columns)
    span = names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}" if names else "none"
    said = _number(broken, "error") if broken else "nothing is broken"
    if broken and not matrix.broken:
        said += ", none of them in what is claimed"
    beyond = ", beyond the claims" if matrix.beyond_claims else ""
    counted = f"{_number(len(matrix.rows), 'binding')}, {_number(len(names), 'release')}"
    return f"{counted} ({span}){beyond}: {said}"


def _number(count: int, of: str) -> str:
    return f"{count} {of}{'' if count == 1 else 's'}"


def broken_lines(matrix: Matrix) -> Iterator[tuple[str, str]]:
    """Yield each error with its release, and the binding that it is about, "" for none."""
    for column in matrix.columns:
        for error in column.errors:
            id = error.binding or ""
            said = f"{id or 'no binding'}: {error.code}: {error.message}"
            yield f"sglang {column.release}: {said}", id


def _notes(matrix: Matrix, row: Row) -> Iterator[str]:
    for column, cell in zip(matrix.columns, row.cells, strict=True):
        since = f" since {cell.since}" if cell.changes and cell.since else ""
        for note in cell.notes:
            yield f"{column.release}{since}: {note}"


def column_names(matrix: Matrix) -> list[str]:
    """Name each column; two of one release by what was asked for as well."""
    names = [column.release for column in matrix.columns]
    return [
        name if names.count(name) == 1 or column.source == name else f"{name} ({column.source})"
        for name, column in zip(names, matrix.columns, strict=True)
    ]


def _states(row: Row) -> list[str]:
    return [cell.state.value for cell in row.cells]


def _left(table: Table) -> list[str]:
    """Return rows as lines whose columns all begin below each other."""
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in table]


def _pipes(table: Table, *, done: bool = False) -> Iterator[str]:
    """Yield a table's lines in Markdown; in one that is `done` the rows are Markdown already."""
    for number, row in enumerate(table):
        cells = row if done and number else [plain(cell) for cell in row]
        yield f"| {' | '.join(cells)} |"
        if number == 0:
            rest = "---|" if done else "---:|"
            yield f"|---|{rest * (len(row) - 1)}"

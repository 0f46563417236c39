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
SHORT = {
    State.HOLDS: "ok",
    State.CHANGED: "ch",
    State.MOVED: "mv",
    State.PLANNED: "pl",
    State.EXCLUDED: "-",
    State.BROKEN: "XX",
}
"""What a cell says where there is no room for its state."""
_ID_AT_LEAST = 24


def render_text(matrix: Matrix, *, verbose: bool = False, width: int | None = None) -> str:
    """Return the table by family, the counts by family and in all, and what is broken.

    `verbose` adds below each binding what its cells have to say. A table that is wider than
    `width` says the same in short.
    """
    names, shown = column_names(matrix), _left(_table(matrix))
    short = width is not None and max(map(len, shown)) > width
    lines: list[str] = []
    if short and width is not None:
        names = _short_names(names)
        lines += [", ".join(f"{word} {state.value}" for state, word in SHORT.items()), ""]
        shown = _left(_table(matrix, names, width))
    rows = _lines_of(matrix)
    for row, line in zip(rows, shown, strict=True):
        lines.append(one_line(line))
        if verbose and row is not None:
            lines += (one_line(f"      {told}") for told in _notes(matrix, row))
    families = family_table(matrix)
    if short:
        families = [["family", *names], *(_short_shares(row) for row in families[1:])]
    total = [["", *names], *total_table(matrix)[1:]]
    lines += ["", *map(one_line, _left(families)), "", *aligned(total)]
    broken = [one_line(line) for line, _ in broken_lines(matrix)]
    lines += ["", *broken] if broken else []
    lines += ["", summary(matrix)]
    return "\n".join(lines).lstrip("\n") + "\n"


def _lines_of(matrix: Matrix) -> list[Row | None]:
    """Return what each line of the table is about: its head and the families' are no binding."""
    found: list[Row | None] = [None]
    for family in matrix.families:
        found += [None, *matrix.of(family)]
    return found


def _table(matrix: Matrix, short: Sequence[str] = (), width: int = 0) -> Table:
    """Return the table; with `short` names of the columns in as few letters as `width` asks for."""
    names = list(short) or column_names(matrix)
    columns = sum(max(2, len(name)) + 2 for name in names)
    room = max(_ID_AT_LEAST, width - columns - 2) if short else None
    # One alignment for all families: a column is read from top to bottom.
    table: Table = [["", *names]]
    for family in matrix.families:
        table.append([family, *("" for _ in names)])
        for row in matrix.of(family):
            states = [SHORT[cell.state] for cell in row.cells] if short else _states(row)
            table.append([f"  {_cut(row.id, room)}", *states])
    return table


def _cut(text: str, room: int | None) -> str:
    """Leave out the middle of what is too long: a name's two ends tell more."""
    if room is None or len(text) <= room:
        return text
    end = (room - 1) // 2
    return f"{text[: room - 1 - end]}…{text[-end:]}"


def _short_names(names: Sequence[str]) -> list[str]:
    """Leave out what all versions begin with, but of the first one."""
    first, *others = names
    starts = [first[: at + 1] for at, letter in enumerate(first) if letter == "." and others]
    shared = [start for start in starts if all(name.startswith(start) for name in others)]
    return [first, *(f".{n.removeprefix(shared[-1])}" for n in others)] if shared else [*names]


def _short_shares(row: Sequence[str]) -> list[str]:
    family, *shares = row
    told = (share.replace(" of ", "/").replace(" broken", SHORT[State.BROKEN]) for share in shares)
    return [family, *told]


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
    """Yield what there is to say of a row, once for releases in a row of which it is the same."""
    releases = [column.release for column in matrix.columns]
    cells = row.cells
    for index, cell in enumerate(cells):
        for note in cell.standing:
            if index and note in cells[index - 1].standing:
                continue
            last = index
            while last + 1 < len(cells) and note in cells[last + 1].standing:
                last += 1
            span = f" to {releases[last]}" if last > index else ""
            yield f"{releases[index]}{span}: {note}"
        since = f" since {cell.since}" if cell.since else ""
        for note in cell.changes:
            yield f"{releases[index]}{since}: {note}"


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

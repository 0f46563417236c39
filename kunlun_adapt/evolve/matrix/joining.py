"""The standings of several releases side by side: what moved and changed from one to the next."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from packaging.version import Version

from kunlun_adapt.check.drift import changes
from kunlun_adapt.diagnostics import Finding
from kunlun_adapt.evolve.matrix.records import Cell, Column, Matrix, Row, State
from kunlun_adapt.evolve.matrix.standing import Standing, Standings
from kunlun_adapt.plan import Binding

_OWN = ("target", "member")
"""The roles of what a binding itself names; the rest is told with its role."""


def joined(releases: Iterable[Standings], *, claim: str, beyond_claims: bool = False) -> Matrix:
    """Make the table, the releases by version. `claim` is the range that the map claims."""
    ordered = sorted(releases, key=lambda item: Version(item.release))
    known: dict[str, Binding] = {}
    for release in ordered:
        # Where a binding stands in the documents is told as the newest release has it.
        known.update((item.binding.id, item.binding) for item in release.bindings)
    found = {id: _row(binding, ordered) for id, binding in known.items()}
    rows = sorted(found.values(), key=lambda row: (row.family, row.file, row.line, row.id))
    columns = [_column(release, known, beyond_claims) for release in ordered]
    return Matrix(claim, beyond_claims, tuple(columns), tuple(rows))


def _column(release: Standings, known: dict[str, Binding], beyond_claims: bool) -> Column:
    # Checked by its claims alone, whatever is found is about a claim: that there is none, too.
    claiming = (s.binding.id for s in release.bindings if s.claimed or not beyond_claims)
    return Column(
        release=release.release,
        source=release.source,
        claimed=release.claimed,
        errors=tuple(_owned(finding, known) for finding in release.errors),
        claiming=frozenset(claiming),
        shut=release.shut,
    )


def _owned(finding: Finding, known: dict[str, Binding]) -> Finding:
    """Name no binding where the finding names what is none, such as the platform class."""
    return finding if finding.binding in known else replace(finding, binding=None)


def _row(binding: Binding, ordered: Sequence[Standings]) -> Row:
    cells = []
    before: tuple[str, Standing] | None = None
    for release in ordered:
        now = next((s for s in release.bindings if s.binding.id == binding.id), None)
        cells.append(_cell(now, before, release))
        if now is not None and now.symbols:
            before = (release.release, now)
    return Row(
        id=binding.id,
        kind=binding.kind,
        family=binding.family,
        claims=binding.claims,
        file=binding.position.file,
        line=binding.position.line,
        cells=tuple(cells),
    )


def _cell(now: Standing | None, before: tuple[str, Standing] | None, release: Standings) -> Cell:
    if now is None:
        return Cell(State.EXCLUDED, "excluded", False, "", why="no such binding in this release")
    binding = now.binding
    if release.shut and not now.codes:
        return Cell(State.EXCLUDED, "excluded", now.claimed, binding.target, why=release.shut)
    moved, told = _compared(before[1], now) if before and now.symbols else (False, ())
    return Cell(
        state=_state(now, moved, bool(told)),
        status="excluded" if release.shut else binding.status,
        claimed=now.claimed,
        target=binding.target,
        since=before[0] if before and now.symbols else "",
        changes=(*told, *now.drift),
        why=binding.status_why or "",
        codes=now.codes,
    )


def _state(now: Standing, moved: bool, changed: bool) -> State:
    if now.codes:
        return State.BROKEN
    if now.binding.status != "bound":
        return State(now.binding.status)
    if moved:
        return State.MOVED
    return State.CHANGED if changed or now.drift else State.HOLDS


def _compared(before: Standing, now: Standing) -> tuple[bool, tuple[str, ...]]:
    """Tell whether the documents name another target, and say all in which the two differ."""
    moved = before.binding.target != now.binding.target
    told = [f"target {now.binding.target}, was {before.binding.target}"] if moved else []
    for key, symbol in now.symbols.items():
        held = before.symbols.get(key)
        if held is None:
            continue
        role = key.split()[0]
        own = role in _OWN
        if held.path != symbol.path:
            if not (moved and own):
                told.append(f"{role} {symbol.path}, was {held.path}")
            # That it is defined elsewhere is no news then.
            held = replace(held, resolved=symbol.resolved)
        told += [text if own else f"{role}: {text}" for text in changes(held, symbol)]
    return moved, tuple(dict.fromkeys(told))

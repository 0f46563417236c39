"""Small releases and the workspace over them, for the tests of the matrix."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from kunlun_adapt.evolve.matrix import Cell, Matrix, Row, joined, standings
from kunlun_adapt.upstream import Lock
from tests.check.bench import Bench
from tests.evolve.diffs import BASICS, following

COMMON = "sglang/srt/utils/common.py"
CLAIM = ">=0.5.17,<0.5.24"


def bench(root: Path) -> Bench:
    """A bench without errors: upstream calls what the workspace binds."""
    made = Bench(root)
    for file, text in BASICS.items():
        # Who asks for the capabilities stays; the rest stands in for what is there.
        made = made.add(file, text) if "graphs" in file else made.drop(file).add(file, text)
    return made


def release(of: Bench, version: str) -> Bench:
    """The bench's release under a version, in a folder of its own."""
    return replace(of.version(version), root=of.root / version)


def matrix(
    workspace: Bench, *releases: Bench, lock: Lock | None = None, beyond: bool = False
) -> Matrix:
    """The matrix of one workspace over several releases."""
    catalog = workspace.catalog()
    assert catalog.platform_map is not None
    found = (
        standings(catalog, lock or Lock(), following(item), beyond_claims=beyond)
        for item in releases
    )
    claim = catalog.platform_map.model.sglang
    return joined(found, claim=claim, beyond_claims=beyond)


def row(of: Matrix, id: str) -> Row:
    """The row of a binding."""
    (found,) = [item for item in of.rows if item.id == id]
    return found


def states(of: Matrix, id: str) -> list[str]:
    """The states of a binding, oldest release first."""
    return [cell.state.value for cell in row(of, id).cells]


def last(of: Matrix, id: str) -> Cell:
    """A binding in the newest release."""
    return row(of, id).cells[-1]

"""Every binding in every release: what holds, moved, changed, is left out, planned or broken."""

from kunlun_adapt.evolve.matrix.joining import joined
from kunlun_adapt.evolve.matrix.records import (
    MEANING,
    WORKING,
    Cell,
    Column,
    Matrix,
    Row,
    State,
    bindings_in,
    states_in,
)
from kunlun_adapt.evolve.matrix.releases import shown_releases
from kunlun_adapt.evolve.matrix.standing import Standing, Standings, standings
from kunlun_adapt.evolve.matrix.work import Job, check_all

__all__ = [
    "MEANING",
    "WORKING",
    "Cell",
    "Column",
    "Job",
    "Matrix",
    "Row",
    "Standing",
    "Standings",
    "State",
    "bindings_in",
    "check_all",
    "joined",
    "shown_releases",
    "standings",
    "states_in",
]

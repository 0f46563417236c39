"""Everything that a public plugin binds is bound here, put elsewhere, or refused on record."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from kunlun_adapt.cli.listing import union_of_profiles
from kunlun_adapt.documents import Catalog, PlatformMap, load_catalog
from kunlun_adapt.plan import Binding
from kunlun_adapt.upstream import Resolver, open_release

ROOT = Path(__file__).resolve().parents[1]
RELEASE = "0.5.19"
REFUSED = "none: "
AT_DEFAULT = "left at default"
DECIDED = "decided in "


class Row(NamedTuple):
    """One thing that the plugin does, and what answers for it here."""

    kind: str
    there: str
    here: str
    remark: str = ""

    @property
    def refusal(self) -> str | None:
        return self.here.removeprefix(REFUSED) if self.here.startswith(REFUSED) else None


def rows() -> list[Row]:
    lines = (ROOT / "tests" / "surface.tsv").read_text(encoding="utf-8").splitlines()
    return [Row(*line.split("\t")) for line in lines if not line.startswith("#")]


ROWS = rows()
BINDING_KINDS = ("hook", "kernel", "member")
named = pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.kind} {row.there} {row.here}")


@cache
def catalog() -> Catalog:
    found = load_catalog(ROOT)
    assert not found.findings
    return found


def platform() -> PlatformMap:
    document = catalog().platform_map
    assert document is not None
    return document.model


@cache
def targets() -> dict[str, set[str]]:
    """Every place at which a binding stands, in any release, by the binding's id."""
    found: dict[str, set[str]] = {}
    for entry in catalog().hooks:
        found[entry.hook.id] = {at.target for at in entry.hook.at}
    for recipe in catalog().operators:
        for bind in recipe.model.binds:
            id = f"{recipe.model.name}/{bind.id or bind.target.rpartition('.')[2]}"
            found.setdefault(id, set()).add(bind.target)
    for shim in platform().shims:
        found[f"shim/{shim.module}"] = {shim.module}
    return found


def members() -> dict[str, set[str]]:
    """The spellings of what the map gives the platform, by the binding's id."""
    found: dict[str, set[str]] = {}
    for key, spellings in platform().interface.items():
        names = {s.method or s.field or s.call or "" for s in spellings}
        found[f"factory/{key}"] = found[f"method/{key}"] = names
    for name in platform().methods:
        found[f"method/{name}"] = {name}
    return found


def settings() -> set[str]:
    """The names of server arguments and environment variables that the map speaks of."""
    arguments = {arg.arg for arg in platform().server_args}
    return arguments | {variable.name for variable in platform().environment}


@named
def test_the_answer_exists(row: Row) -> None:
    points = {point.feature for point in platform().landing_points}
    refusal = row.refusal
    if refusal is None:
        known = {
            "model": {recipe.model.name for recipe in catalog().recipes},
            "feature": points,
        }.get(row.kind, targets().keys() | members().keys() | settings())
        assert row.here in known
    elif refusal.startswith(DECIDED):
        assert row.there.rpartition(".")[2] in decisions(refusal.removeprefix(DECIDED))
    elif refusal == AT_DEFAULT:
        assert row.there in {left.member for left in platform().left_at_default}
    else:
        assert refusal in points


def decisions(file: str) -> str:
    """The comments of a document from the first word of a decision on, up to what is no comment."""
    text = (ROOT / file).read_text(encoding="utf-8")
    found = re.findall(r"^# decided [0-9-]+,.*\n(?:#.*\n)*", text, flags=re.MULTILINE)
    assert found, f"{file} records no decision"
    return "".join(found)


@named
def test_it_stands_where_the_row_says(row: Row) -> None:
    places = members() if row.kind == "member" else targets()
    if row.kind not in BINDING_KINDS or row.refusal is not None:
        assert not row.remark
        return
    if row.remark:
        assert row.remark == "re-aimed"
        assert row.there not in places.get(row.here, set())
    else:
        assert row.there in places[row.here]


def test_a_refused_symbol_is_not_bound_all_the_same() -> None:
    bound = set().union(*targets().values())
    assert not [row.there for row in ROWS if row.refusal is not None and row.there in bound]


def test_the_models_name_their_architecture() -> None:
    architectures = {r.model.name: r.model.architectures for r in catalog().recipes}
    models = [row for row in ROWS if row.kind == "model" and row.refusal is None]
    assert models
    for row in models:
        assert row.there in architectures[row.here]


def test_every_operator_serves_a_model_or_a_feature() -> None:
    used = {name for recipe in catalog().recipes for name in recipe.model.operators}
    used |= {name for point in platform().landing_points for name in point.bindings}
    assert not [r.model.name for r in catalog().operators if r.model.name not in used]


def test_no_hook_and_no_operator_borrows_the_reason_of_another() -> None:
    reasons = [entry.hook.why for entry in catalog().hooks]
    reasons += [recipe.model.why for recipe in catalog().operators]
    assert not [why for why, times in Counter(reasons).items() if times > 1]


def test_no_row_stands_twice() -> None:
    assert max(Counter((row.kind, row.there, row.here) for row in ROWS).values()) == 1


def test_how_much_there_is() -> None:
    """So that a row that is taken out is missed."""
    # Of the plugin's 124 hooks four are put on a symbol that another of them holds already, one is
    # on two symbols, and one repeats two kernels.
    symbols = {kind: len({r.there for r in ROWS if r.kind == kind}) for kind in BINDING_KINDS}
    assert symbols == {"hook": 120, "kernel": 137, "member": 21}
    assert sum(row.kind == "environment" for row in ROWS) == 53


@pytest.mark.upstream
def test_at_least_220_bindings_hold_on_the_release() -> None:
    bindings = union_of_profiles(catalog(), Resolver(open_release(RELEASE)))
    by_status = Counter(b.status for b in bindings)
    assert by_status["bound"] + by_status["planned"] >= 220
    assert not [b.id for b in bindings if not _says_why(b)]


def _says_why(binding: Binding) -> bool:
    """A binding that is left out says why it is, every other one why it is there."""
    return bool(binding.status_why if binding.status == "excluded" else binding.why)

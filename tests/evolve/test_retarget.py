"""`retarget` on real releases: from the shipped workspace cut back to one, to newer ones.

What the shipped documents say of the newer release was verified by hand, and is what the automatic
edits have to come to. Relocations beyond their claims are in relocations.tsv.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from packaging.version import Version

from kunlun_adapt.check import context_for
from kunlun_adapt.diagnostics import Severity
from kunlun_adapt.documents import in_range, load_catalog
from kunlun_adapt.evolve.retarget import (
    Account,
    Job,
    Retargeted,
    read_texts,
    releases_for,
    retarget,
)
from kunlun_adapt.evolve.retarget.rates import measured
from kunlun_adapt.plan import bind_groups
from kunlun_adapt.source.text import literal_default
from kunlun_adapt.upstream import Symbol, open_release, read_lock
from kunlun_adapt.upstream.following import FollowingResolver
from tests.evolve.cut import cut_back
from tests.evolve.test_retarget_engine import unlisted

pytestmark = pytest.mark.upstream

ROOT = Path(__file__).resolve().parents[2]
TABLE = Path(__file__).with_name("relocations.tsv")
SHIPPED = load_catalog(ROOT)


def opened(version: str) -> FollowingResolver:
    return FollowingResolver(open_release(version))


@dataclass(frozen=True)
class Run:
    root: Path
    done: Retargeted
    new: FollowingResolver


@cache
def run(folder: Path, start: str, release: str, proposals: bool = False) -> Run:
    """Cut the shipped workspace back and carry it to a release."""
    root = folder / f"{start}-{release}-{proposals}"
    root.mkdir()
    cut_back(ROOT, root, start)
    lock, new = read_lock(root / "adapt.lock"), opened(release)
    releases = releases_for(f"=={start}", lock, Version(release), opened)
    assert [r.version for r in releases.known] == [start]
    texts = read_texts(root)
    done = retarget(
        Job(
            root=root,
            texts=texts,
            lock=lock,
            known=releases.known,
            between=releases.between,
            new=new,
            choose=lambda account: proposals,
        )
    )
    assert texts == read_texts(root)  # nothing is written
    assert unlisted(done) == set()
    return Run(root, done, new)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cut")


def verified(release: str) -> dict[str, Mapping[str, Any] | None]:
    """What the shipped documents say of a release: each binding's entry, None where left out."""
    found: dict[str, Mapping[str, Any] | None] = {}
    groups = [(e.hook.id, list(e.hook.at), e.hook.excluded) for e in SHIPPED.hooks]
    for recipe in SHIPPED.operators:
        for id, indexes in bind_groups(recipe.model).items():
            binds = [recipe.model.binds[i] for i in indexes]
            groups.append((id, binds, [x for b in binds for x in b.excluded]))
    platform = SHIPPED.platform_map
    assert platform is not None
    groups += [(f"interface.{k}", list(s), []) for k, s in platform.model.interface.items()]
    for name, entries, excluded in groups:
        if any(in_range(x.sglang, release) for x in excluded):
            found[name] = None
        for entry in entries:
            if in_range(entry.sglang, release) and name not in found:
                found[name] = entry.model_dump(exclude_unset=True)
    return found


def moved() -> dict[str, str]:
    rows = [line.split("\t") for line in TABLE.read_text(encoding="utf-8").splitlines()]
    return {row[0]: row[1] for row in rows if not row[0].startswith("#")}


def as_said(entry: Mapping[str, Any]) -> dict[str, Any]:
    """An entry without its range, and with `ignores` in one form."""
    kept = {k: v for k, v in entry.items() if k not in ("sglang", "served", "accepts", "excluded")}
    ignores = kept.pop("ignores", None) or {}
    if not isinstance(ignores, Mapping):
        ignores = dict.fromkeys(ignores, "$any")
    return {**kept, "ignores": dict(ignores)}


def wrong(run: Run, account: Account) -> str | None:
    """What is wrong with an automatic edit by the hand-verified data, None where nothing is."""
    release = run.done.release
    known = verified(release)
    if account.binding in known:
        wanted = known[account.binding]
        if wanted is None:
            return "it is left out there"
        said, wanted = as_said(account.entry), as_said(wanted)
        for name in said["ignores"].keys() & wanted["ignores"].keys():
            # Whoever verified that any value may be ignored allows the default, which is proved.
            if wanted["ignores"][name] == "$any":
                said["ignores"][name] = "$any"
        if said != wanted:
            return f"{said} is not {wanted}"
        return _defaults(run, account)
    target = account.values.get("target")
    if target is not None and target != moved().get(account.binding):
        return f"nobody verified that it is {target}"
    return _defaults(run, account)


def _defaults(run: Run, account: Account) -> str | None:
    """What is newly ignored has to be ignored at its default, which any caller may leave out."""
    symbol = run.new.resolve(str(account.entry.get("target")))
    ignores = account.values.get("ignores")
    if not isinstance(ignores, Mapping) or not isinstance(symbol, Symbol):
        return None
    before = account_before(run, account)
    for name, value in ignores.items():
        parameter = symbol.signature.parameter(name) if symbol.signature else None
        if name in before or parameter is None:
            continue
        plain, default = literal_default(parameter.default)
        if not plain or default != value:
            return f"{name} is ignored as {value!r} and not at its default {parameter.default}"
    return None


def account_before(run: Run, account: Account) -> set[str]:
    catalog = load_catalog(run.root)
    entries: list[Any] = [
        at for e in catalog.hooks if e.hook.id == account.binding for at in e.hook.at
    ]
    for recipe in catalog.operators:
        for id, indexes in bind_groups(recipe.model).items():
            entries += [recipe.model.binds[i] for i in indexes if id == account.binding]
    return {name for entry in entries for name in entry.ignores}


def automatic(run: Run) -> list[Account]:
    """What is taken over without a person, except what is bound to a name in all releases."""
    return [a for a in run.done.accounts if a.outcome in ("held", "carried")]


@pytest.mark.parametrize(
    ("start", "release", "least"),
    [
        ("0.5.17", "0.5.19", 190),
        pytest.param("0.5.17", "0.5.23", 140, marks=pytest.mark.full),
        pytest.param("0.5.19", "0.5.23", 155, marks=pytest.mark.full),
    ],
)
def test_every_automatic_edit_is_right(folder: Path, start: str, release: str, least: int) -> None:
    done = run(folder, start, release)
    found = {a.binding: w for a in automatic(done) if (w := wrong(done, a)) is not None}
    assert found == {}
    assert len(automatic(done)) >= least, done.done.counts
    for account in done.done.of("carried"):
        for rate in account.rates:
            assert rate.is_certain, (account.binding, rate)


@pytest.mark.full
def test_old_releases_keep_working(folder: Path) -> None:
    done = run(folder, "0.5.17", "0.5.19", proposals=True).done
    old, new = done.after
    assert (old.release, new.release) == ("0.5.17", "0.5.19")
    assert old.count(Severity.ERROR) == 0
    # What is left to a person keeps the claim where it is, and nothing else has an error.
    assert done.claim == ("==0.5.17", "==0.5.17")
    errors = {f.binding for f in new.findings if f.severity is Severity.ERROR}
    assert errors - {None} <= {a.binding for a in done.of("left")}
    assert 0 < new.count(Severity.ERROR) < done.before[0].count(Severity.ERROR)


def test_a_claim_is_not_raised_over_what_is_left(folder: Path) -> None:
    done = run(folder, "0.5.17", "0.5.19").done
    # A parameter that upstream's own calls pass.
    (account,) = [a for a in done.of("proposed") if a.binding == "rms_norm/RMSNorm"]
    assert account.values == {"ignores": {"quant_linear": None}}
    assert account.range == ">=0.5.18,<0.5.20" or account.range == ">=0.5.18"
    assert any("llama.py" in said for said in account.evidence)
    assert done.claim == ("==0.5.17", "==0.5.17")


def test_what_upstream_calls_no_more_is_proposed_to_be_left_out(folder: Path) -> None:
    done = run(folder, "0.5.17", "0.5.19").done
    unused = {a.binding: a for a in done.of("proposed") if "nothing in upstream" in a.says[-1]}
    known = verified("0.5.19")
    assert {name for name in unused if known[name] is None} == {
        "compress_keys_indexed/compress_forward",
        "compressed_norm_rope/compress_fused_norm_rope_inplace",
        "pack_key_rows/quant_to_nope_fp8_rope_bf16_pack_triton",
        "paged_compress_places/triton_create_paged_compress_data",
        "store_key_rows/_set_k_and_s_triton",
        "v4-key-pack",
    }
    # Nothing called this one in 0.5.17 either: a person kept it.
    assert {name for name in unused if known[name] is not None} == {
        "kda_recurrent/fused_recurrent_kda_fwd"
    }
    assert {a.added["sglang"] for a in unused.values()} == {">=0.5.18"}
    (evidence,) = unused["v4-key-pack"].evidence
    assert evidence.startswith("its last users, in sglang 0.5.17: ")


def test_a_hook_beside_a_changed_body_is_proposed(folder: Path) -> None:
    done = run(folder, "0.5.17", "0.5.19").done
    (account,) = [a for a in done.accounts if a.binding == "dflash-decode-eviction"]
    assert account.outcome == "proposed"
    assert account.says == (
        "its body changed in sglang 0.5.18, and the hook works with it: see kunlun-adapt diff",
    )


@pytest.mark.full
def test_keys_of_the_interface_are_proposed_as_they_were_verified(folder: Path) -> None:
    done = run(folder, "0.5.17", "0.5.23", proposals=True)
    known = verified("0.5.23")
    spelled = [
        a for a in done.done.accounts
        if a.binding.startswith("interface.") and a.values and a.outcome != "left"
        and not a.binding.startswith("interface.process")
    ]  # fmt: skip
    for account in spelled:
        said = {k: v for k, v in as_said(account.entry).items() if v is not None}
        assert said == as_said(known[account.binding] or {}), account.binding
    right, of = measured()["rates"]["spelled"]["all"]
    assert (len(spelled), 0) == (right, of)
    assert {a.range for a in spelled} == {">=0.5.22"}


@pytest.mark.full
def test_what_was_proposed_leaves_little_to_do(folder: Path) -> None:
    done = run(folder, "0.5.17", "0.5.23", proposals=True)
    catalog = load_catalog(done.root, done.done.texts)
    context = context_for(catalog, done.new, beyond_claims=True)
    assert context is not None
    told = {account.binding for account in done.done.of("left")}
    errors = [f for r in done.done.after for f in r.findings if f.severity is Severity.ERROR]
    # What is new in the platform's interface is for a person to give or to leave.
    assert {f.code for f in errors if f.binding not in told} <= {"KA008", "KA201", "KA204"}
    assert len(told) <= 25


def test_the_table_of_relocations_is_of_this_workspace() -> None:
    names = {e.hook.id for e in SHIPPED.hooks}
    for recipe in SHIPPED.operators:
        names |= set(bind_groups(recipe.model))
    assert set(moved()) <= names

"""The lock holds what planning asks for, no less and no more."""

from __future__ import annotations

from pathlib import Path

import pytest

from kunlun_adapt.documents import load_catalog
from kunlun_adapt.evolve import lock_for, usage_for
from kunlun_adapt.locate import LOCK_FILE
from kunlun_adapt.plan import make_plan
from kunlun_adapt.upstream import Lock, LockFacts, Resolver, open_release, read_lock

ROOT = Path(__file__).resolve().parents[2]
RELEASES = read_lock(ROOT / LOCK_FILE).releases


@pytest.mark.upstream
@pytest.mark.parametrize("release", RELEASES)
def test_the_committed_lock_is_up_to_date(release: str) -> None:
    held = read_lock(ROOT / LOCK_FILE)
    catalog, resolver = load_catalog(ROOT), Resolver(open_release(release))
    fresh, missing = lock_for(catalog, resolver)
    assert missing == ()
    merged = held.replaced(fresh)
    row = usage_for(catalog, resolver, merged, held.usage.get(release))
    assert merged.with_usage(release, row).text() == held.text()


@pytest.mark.upstream
def test_a_plan_from_the_lock_is_a_plan_from_the_release() -> None:
    catalog = load_catalog(ROOT)
    resolver = Resolver(open_release("0.5.19"))
    lock = read_lock(ROOT / LOCK_FILE)
    for profile in ("card", "simulator"):
        locked = make_plan(catalog, LockFacts(lock, "0.5.19"), profile)
        live = make_plan(catalog, resolver, profile)
        assert locked.bindings == live.bindings
        assert [k.symbol for k in locked.kernels] == [k.symbol for k in live.kernels]
        assert [h.symbol for h in locked.hooks] == [h.symbol for h in live.hooks]


@pytest.mark.upstream
def test_a_release_without_the_targets_is_reported(tmp_path: Path) -> None:
    text = (ROOT / "platform_map.yaml").read_text(encoding="utf-8")
    old = "sglang.srt.utils.common.support_triton"
    (tmp_path / "platform_map.yaml").write_text(text.replace(old, f"{old}s"), encoding="utf-8")
    lock, missing = lock_for(load_catalog(tmp_path), Resolver(open_release("0.5.19")))
    assert [m.path for m in missing] == [f"{old}s"]
    assert isinstance(lock, Lock) and lock.symbol("0.5.19", f"{old}s") is None

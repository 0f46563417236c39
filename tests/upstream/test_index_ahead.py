"""Which indexes another process is asked to make, and that it is let go."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

from kunlun_adapt.upstream.index import ahead


class Pool:
    """Takes what is submitted, and does none of it."""

    made: ClassVar[list[Pool]] = []

    def __init__(self, *how: Any) -> None:
        self.asked: list[str] = []
        self.ended: dict[str, bool] = {}
        Pool.made.append(self)

    def submit(self, make: Any, version: str) -> None:
        assert make is ahead._make
        self.asked.append(version)

    def shutdown(self, **how: bool) -> None:
        self.ended = how


@pytest.fixture
def pools(monkeypatch: pytest.MonkeyPatch) -> list[Pool]:
    monkeypatch.setattr(Pool, "made", [])
    monkeypatch.setattr(ahead, "ProcessPoolExecutor", Pool)
    monkeypatch.setattr(ahead, "_is_held", lambda version: version == "0.5.18")
    return Pool.made


def test_what_the_cache_lacks_is_made_in_order(pools: list[Pool]) -> None:
    with ahead.made_ahead(["0.5.17", "0.5.18", "0.5.19"]):
        (pool,) = pools
        assert pool.asked == ["0.5.17", "0.5.19"] and not pool.ended
    assert pool.ended == {"cancel_futures": True}


def test_it_is_let_go_when_the_work_fails(pools: list[Pool]) -> None:
    with pytest.raises(KeyError), ahead.made_ahead(["0.5.17", "0.5.19"]):
        raise KeyError
    assert Pool.made[0].ended["cancel_futures"]


@pytest.mark.parametrize("versions", [[], ["0.5.18"], ["0.5.17", "0.5.18"]])
def test_for_one_index_there_is_no_process(pools: list[Pool], versions: list[str]) -> None:
    with ahead.made_ahead(versions):
        assert pools == []

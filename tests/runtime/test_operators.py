"""Operators that our own classes take: which binding is in effect then, and what debugging says."""

from __future__ import annotations

import pytest

from tests.runtime.stage import STARTED, Stage, fine

TAKE = STARTED + (
    "import ours, kunlun_adapt_generated.operators.silu as made\n"
    "from kunlun_adapt.runtime import ledger\n"
    "from kunlun_adapt.runtime.operators import operator\n"
    "made.silu = made.bind_silu\n"
    "def states(): return {e.id: e.state for e in ledger.LEDGER.entries.values() if '.' in e.id}\n"
    "from kunlun_adapt.runtime.operators import OWN\n"
    "for place in PLACES: ledger.enter(f'silu/{place}', True).detail = OWN\n"
)


@pytest.fixture
def one(stage: Stage) -> str:
    return TAKE.replace("PLACES", "['kv_pool.mha']")


@pytest.fixture
def two(stage: Stage) -> str:
    return TAKE.replace("PLACES", "['kv_pool.mha', 'kv_pool.mla']")


def test_the_only_class_need_not_say_which_it_is(stage: Stage, one: str) -> None:
    code = "print(operator('silu') is made.silu, states()['silu/kv_pool.mha'])\n"
    assert fine(stage.run(one + code)).split() == ["True", "applied"]


def test_of_several_the_one_that_takes_it_is_in_effect(stage: Stage, two: str) -> None:
    code = (
        "try:\n    operator('silu')\nexcept LookupError as e:\n    print(e)\n"
        "try:\n    operator('silu', serves='pool')\nexcept LookupError as e:\n    print(e)\n"
        "operator('silu', serves='kv_pool.mla')\n"
        "print([states()[f'silu/kv_pool.{p}'] for p in ('mha', 'mla')])\n"
    )
    unsaid, wrong, taken = fine(stage.run(two + code)).splitlines()
    assert "serves kv_pool.mha, kv_pool.mla; say which" in unsaid
    assert "serves='kv_pool.mha'" in unsaid and "does not serve 'pool'" in wrong
    assert taken == "['pending', 'applied']"


def test_debugging_names_the_binding_once_whoever_took_it(stage: Stage, one: str) -> None:
    code = "for take in (operator('silu'), operator('silu')):\n    take(ours.Thing())\n"
    done = stage.run(one + code, KUNLUN_ADAPT_DEBUG="1")
    fine(done)
    assert done.stderr.count("first call of silu/kv_pool.mha in the main process") == 1
    assert done.stderr.count("first call") == 1

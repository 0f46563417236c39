"""A kernel marked as eager is refused by name while a graph is captured."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

import pytest

from kunlun_adapt.documents import load_catalog
from kunlun_adapt.locate import LOCK_FILE
from kunlun_adapt.plan import make_plan
from kunlun_adapt.runtime.generated import PACKAGE, publish
from kunlun_adapt.source import compile_plan, template_folder
from kunlun_adapt.upstream import LockFacts, read_lock
from tests.runtime.stage import ROOT

pytestmark = pytest.mark.torch


@pytest.fixture
def module() -> Iterator[Any]:
    from kunlun_adapt import simulator

    simulator.install()
    facts = LockFacts(read_lock(ROOT / LOCK_FILE), "0.5.19")
    plan = make_plan(load_catalog(ROOT), facts, "simulator")
    publish(compile_plan(plan, template_folder(ROOT)).modules, "test")
    yield lambda name: importlib.import_module(f"{PACKAGE}.operators.{name}")
    publish({}, "nothing")


def test_nothing_is_captured_by_a_torch_without_graphs() -> None:
    import torch

    from kunlun_adapt.runtime.capture import capturing

    if not torch.backends.cuda.is_built():
        assert capturing()() is False


def test_a_runtime_that_answers_for_cuda_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    from kunlun_adapt.runtime.capture import capturing

    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
    assert capturing()() is True


def test_an_eager_operator_is_refused(module: Any) -> None:
    from kunlun_adapt.runtime.dispatch import CallRefused
    from tests.runtime.operator_calls import operator_calls

    prefill = module("paged_prefill_attention")
    given = operator_calls()["paged_prefill_attention"][0]
    prefill.paged_prefill_attention(**given)
    before = list(prefill.served)
    prefill.is_capturing = lambda: True
    says = "paged_prefill_attention: the tier xpu_prefill_raw is marked `capture: eager`"
    with pytest.raises(CallRefused, match=says):
        prefill.paged_prefill_attention(**given)
    assert prefill.served == before, "a refused call was not served"


def test_only_the_tier_that_is_eager_is_refused(module: Any) -> None:
    """The vendor's expert kernels may be captured; the golden behind them waits for the device."""
    from kunlun_adapt.runtime.dispatch import CallRefused
    from tests.runtime.operator_calls import operator_calls

    experts = module("fused_experts")
    experts.is_capturing = lambda: True
    small, elsewhere = operator_calls()["fused_experts"]
    experts.serve_fused_experts(**small)
    with pytest.raises(CallRefused, match="the tier golden is marked"):
        experts.serve_fused_experts(**elsewhere)


def test_a_safe_operator_does_not_ask(module: Any) -> None:
    assert not hasattr(module("rms_norm"), "is_capturing")

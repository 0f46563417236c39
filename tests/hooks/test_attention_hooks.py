"""The hooks about Triton and slot look-ups."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")
from kunlun_adapt.hooks.attention import support_triton  # noqa: E402
from kunlun_adapt.hooks.kv_cache import get_last_loc  # noqa: E402

pytestmark = pytest.mark.torch


@pytest.mark.parametrize("backend", ["kunlun", "triton"])
def test_no_backend_may_use_triton(backend):
    assert support_triton(SimpleNamespace(args={"backend": backend})) is False


def test_last_slot_of_each_prefix():
    table = torch.arange(30, dtype=torch.int32).view(3, 10)
    arguments = {
        "req_to_token": table,
        "req_pool_indices": torch.tensor([2, 0, 1]),
        "prefix_lens": torch.tensor([4, 0, 10]),
    }
    last = get_last_loc(SimpleNamespace(args=arguments))
    assert last.tolist() == [23, -1, 19]
    assert last.dtype == torch.int64

"""The cache writes against one assignment per row."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
from kunlun_adapt.golden.kv_cache import store_kv_cache, store_mla_cache  # noqa: E402

pytestmark = pytest.mark.torch


def test_rows_land_at_their_slots_and_nowhere_else():
    key, value = torch.randn(3, 2, 8), torch.randn(3, 2, 6)
    key_cache, value_cache = torch.zeros(4, 2, 4, 8), torch.zeros(4, 2, 4, 6)
    slots = torch.tensor([15, 4, 9])
    store_kv_cache(key, value, key_cache, value_cache, slots)
    want_key, want_value = torch.zeros(4, 2, 4, 8), torch.zeros(4, 2, 4, 6)
    for row, slot in enumerate(slots.tolist()):
        want_key[slot // 4, :, slot % 4] = key[row]
        want_value[slot // 4, :, slot % 4] = value[row]
    assert torch.equal(key_cache, want_key)
    assert torch.equal(value_cache, want_value)


@pytest.mark.parametrize("rope_width", [0, 2])
def test_latent_rows_are_latent_then_rope(rope_width):
    latent, rope = torch.randn(2, 5), torch.randn(2, rope_width)
    cache = torch.zeros(3, 4, 5 + rope_width)
    store_mla_cache(latent, rope if rope_width else None, cache, torch.tensor([6, 11]))
    assert torch.equal(cache[1, 2], torch.cat([latent[0], rope[0]]))
    assert torch.equal(cache[2, 3], torch.cat([latent[1], rope[1]]))
    assert int((cache != 0).any(-1).sum()) == 2

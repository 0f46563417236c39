"""Simulated ``kunlun_ops`` writes into the paged key/value cache.

What a call may look like is in ``contracts/kv_cache.yaml``.
"""

from __future__ import annotations

from torch import Tensor

from kunlun_adapt.golden.kv_cache import store_kv_cache
from kunlun_adapt.simulator.contract import simulated


@simulated("kunlun_ops.reshape_and_cache")
def reshape_and_cache(
    key: Tensor,
    value: Tensor,
    key_cache: Tensor,
    value_cache: Tensor,
    slot_mapping: Tensor,
    unused_first: None,
    unused_second: None,
    flag: int,
) -> None:
    """Write rows into caches ``[blocks, kv_heads, block, dim]`` (eight-argument form)."""
    store_kv_cache(key, value, key_cache, value_cache, slot_mapping)


@simulated("kunlun_ops.reshape_and_cache_flash")
def reshape_and_cache_flash(
    key: Tensor,
    value: Tensor,
    key_cache: Tensor,
    value_cache: Tensor,
    slot_mapping: Tensor,
    BLHD_LAYOUT: bool,
) -> None:
    """Write rows into caches; ``BLHD_LAYOUT`` False is ``[blocks, kv_heads, block, dim]``."""
    if BLHD_LAYOUT:
        key_cache, value_cache = key_cache.transpose(1, 2), value_cache.transpose(1, 2)
    store_kv_cache(key, value, key_cache, value_cache, slot_mapping)

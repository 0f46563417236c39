"""Which tier the recipes give to which call, on both sides of every border that matters."""

from __future__ import annotations

from pathlib import Path

import pytest

from kunlun_adapt.documents import load_catalog
from kunlun_adapt.plan.tiers import TierTable, call_values, tier_table

ROOT = Path(__file__).resolve().parents[3]
CATALOG = load_catalog(ROOT)
VENDOR = {
    f"op.kunlun_ops.{name}": True
    for name in (
        "speculative_attention",
        "paged_attention",
        "reshape_and_cache",
        "reshape_and_cache_flash",
    )
}


def table(name: str) -> TierTable:
    found = CATALOG.operator(name)
    assert found is not None
    return tier_table(found.model)


def serving(name, dtype, shapes, **given):
    operator = table(name)
    return operator.serving(call_values(operator, shapes, dtype, {**VENDOR, **given}))


@pytest.mark.parametrize(
    ("dim", "v_dim", "q_total", "kv_total", "tier"),
    [
        (64, 64, 40, 40, "xpu_prefill_raw"),
        (192, 128, 40, 40, "xpu_prefill_raw"),
        (64, 64, 40, 41, "xpu_prefill_paged"),
        (192, 128, 40, 41, "golden"),
        (16, 16, 40, 40, "golden"),
        (48, 48, 40, 41, "golden"),
        (64, 80, 40, 40, "golden"),
    ],
)
def test_prefill(dim, v_dim, q_total, kv_total, tier):
    shapes = {"q": (40, 4, dim), "value": (40, 2, v_dim)}
    assert (
        serving("paged_prefill_attention", "float32", shapes, q_total=q_total, kv_total=kv_total)
        == tier
    )


@pytest.mark.parametrize(
    ("dim", "q_len", "scale", "window", "newer", "tier"),
    [
        (64, 1, 0.125, -1, True, "xpu_speculative"),
        (64, 4, 0.125, -1, True, "xpu_speculative"),
        (64, 1, 0.125, 22, True, "xpu_speculative"),
        (16, 1, 0.25, -1, True, "golden"),
        (128, 1, 128**-0.5, -1, None, "xpu_paged"),
        (128, 1, 128**-0.5, 22, None, "golden"),
        (128, 1, 0.1, -1, None, "golden"),
        (128, 2, 128**-0.5, -1, None, "golden"),
        (64, 1, 0.125, -1, None, "golden"),
    ],
)
def test_decode(dim, q_len, scale, window, newer, tier):
    shapes = {"q": (3, q_len, 4, dim), "value_cache": (9, 2, 16, dim)}
    given = {"scale": scale, "window": window, "op.kunlun_ops.speculative_attention": newer}
    assert serving("paged_decode_attention", "bfloat16", shapes, **given) == tier


@pytest.mark.parametrize(
    ("dtype", "q_len", "rank", "longest", "tier"),
    [
        ("bfloat16", 1, 512, 4096, "xpu_mla_indexed"),
        ("float16", 2, 512, 4096, "xpu_mla_indexed"),
        ("bfloat16", 1, 512, (1 << 25) // 3 + 1, "xpu_mla_paged"),
        ("bfloat16", 1, 256, 4096, "xpu_mla_paged"),
        ("float32", 1, 512, 4096, "xpu_mla_paged"),
        ("bfloat16", 3, 512, 4096, "golden"),
        ("float32", 2, 512, 4096, "golden"),
    ],
)
def test_latent_decode(dtype, q_len, rank, longest, tier):
    shapes = {"q": (3, q_len, 4, rank + 64), "out": (3, q_len, 4, rank)}
    assert serving("mla_decode_attention", dtype, shapes, max_seq_len=longest) == tier


@pytest.mark.parametrize(
    ("dtype", "tokens", "rank", "longest", "tier"),
    [
        ("bfloat16", 100, 512, 4096, "xpu_mla_prefill_indexed"),
        ("bfloat16", 8192, 512, 16384, "xpu_mla_prefill_indexed"),
        ("bfloat16", 8192, 512, 16385, "xpu_mla_prefill_by_token"),
        ("bfloat16", 8193, 512, 32768, "golden"),
        ("float16", 100, 512, 4096, "xpu_mla_prefill_by_token"),
        ("float32", 8192, 32, 4096, "xpu_mla_prefill_by_token"),
        ("float32", 8193, 32, 8193, "golden"),
    ],
)
def test_latent_prefill(dtype, tokens, rank, longest, tier):
    shapes = {"q": (tokens, 4, rank + 64), "out": (tokens, 4, rank)}
    assert serving("mla_prefill_attention", dtype, shapes, max_seq_len=longest) == tier


@pytest.mark.parametrize(
    ("v_dim", "flash", "tier"),
    [(64, True, "xpu_store_flash"), (64, None, "xpu_store_reshape"), (48, True, "golden")],
)
def test_store(v_dim, flash, tier):
    shapes = {"key": (5, 2, 64), "value": (5, 2, v_dim)}
    given = {"op.kunlun_ops.reshape_and_cache_flash": flash}
    assert serving("store_kv_cache", "float32", shapes, **given) == tier


@pytest.mark.parametrize(
    ("dtype", "rope", "tier"),
    [
        ("bfloat16", (5, 64), "xpu_mla_concat"),
        ("float32", (5, 64), "xpu_mla_scatter"),
        ("float32", None, "golden"),
        ("bfloat16", None, "golden"),
    ],
)
def test_latent_store(dtype, rope, tier):
    shapes = {"latent": (5, 512), **({"rope": rope} if rope else {})}
    assert serving("store_mla_cache", dtype, shapes) == tier

"""The index of real releases says what the resolver says, which reads module by module."""

from __future__ import annotations

from collections import Counter
from functools import cache

import pytest

from kunlun_adapt.check.rules.kernel_inside_kernels import inside_kernels
from kunlun_adapt.upstream import Definition, Index, Resolver, Symbol, open_index, open_release

pytestmark = pytest.mark.upstream


@cache
def index(version: str) -> Index:
    return open_index(open_release(version))


@pytest.mark.parametrize("version", ["0.5.19", "0.5.23"])
def test_the_index_equals_the_resolver(version: str) -> None:
    held = index(version)
    fresh = Resolver(held.resolver.release)
    modules = [m for m in held.modules if m.startswith("sglang.srt.") and ".test" not in m][::12]
    sample = [definition for module in modules for definition in held.defined_in(module)][::5]
    count: Counter[str] = Counter()
    for definition in sample:
        symbol = fresh.resolve(definition.path)
        if isinstance(symbol, Symbol) and symbol.location == definition.location:
            assert said(definition) == what(symbol), definition.path
            count["same"] += 1
        else:
            # Another definition of the name, under another guard, or what an alias leads to.
            count["another"] += 1
    assert count["same"] >= 300
    assert count["another"] < count["same"] / 20


def said(definition: Definition) -> tuple[object, ...]:
    kind, signature = definition.kind, definition.signature
    return kind, signature, definition.decorators, definition.guard, definition.fingerprint


def what(symbol: Symbol) -> tuple[object, ...]:
    # Of a class the resolver also tells how it is made.
    callable_ = symbol.signature is not None and symbol.kind not in ("class", "constant")
    signature = symbol.signature.text() if callable_ and symbol.signature else None
    return symbol.kind, signature, symbol.decorators, symbol.guard, symbol.fingerprint


def test_every_module_of_srt_is_seen() -> None:
    held = index("0.5.19")
    assert sum(module.startswith("sglang.srt") for module in held.modules) > 1700
    assert [module for module in held.modules if held.table(module) is None] == []


def test_names_look_the_same_whether_a_module_is_read_or_held() -> None:
    held = index("0.5.19")
    fresh = Resolver(held.resolver.release)
    paths = [
        *("sglang.srt.layers.rotary_embedding.get_rope", "sglang.srt.layers.activation.SiluAndMul"),
        *("sglang.Engine", "sglang.srt.server_args.ServerArgs"),
        "sglang.srt.layers.moe.topk.grouped_topk",
        "sglang.srt.speculative.eagle_worker_v2.EAGLEWorkerV2.verify",
        "sglang.srt.layers.attention.nsa_backend.NativeSparseAttnBackend",
    ]
    for path in paths:
        assert held.resolver.resolve(path) == fresh.resolve(path)


def test_who_imports_what() -> None:
    found = index("0.5.19").importers("sglang.srt.layers.rotary_embedding.get_rope")
    both = {item.path for item in found}
    assert "sglang.srt.layers.rotary_embedding.get_rope" in both
    assert len({item.module for item in found}) > 80


def test_the_scheduler_loads_what_a_running_one_was_seen_to_load() -> None:
    loaded = index("0.5.19").loaded_with("sglang.srt.managers.scheduler")
    # A scheduler on a CPU had 817 modules when plugins were registered.
    assert 750 < len(loaded) < 900
    assert "sglang.srt.layers.quantization" in loaded


def test_kernels_that_only_kernels_call() -> None:
    held = index("0.5.19")
    kernels = [
        definition
        for module in held.modules
        for definition in held.defined_in(module)
        if definition.kind == "triton_kernel"
    ]
    held.expect(kernel.path for kernel in kernels)
    inside = [kernel.path for kernel in kernels if inside_kernels(held, kernel.path)]
    assert len(kernels) == 630
    assert len(inside) == 90

"""Which member of a platform may be a lost one under a new name."""

from __future__ import annotations

import pytest

from kunlun_adapt.check.alike_members import like_member
from tests.check.bench import MAP, Bench
from tests.check.examples import INTERFACE


@pytest.mark.parametrize(
    ("lost", "choice", "key"),
    [
        ("get_graph_runner_cls", "get_device_graph_runner_cls", "graph_runner"),
        ("get_device_total_memory", "get_total_device_memory", "methods.get_device_total_memory"),
        ("get_mha_kv_pool_cls", "get_kv_pool_cls", "kv_pool.mha"),
        ("get_nsa_kv_pool_cls", "get_dsa_kv_pool_cls", "kv_pool.dsa"),
        ("supports_triton", "supports_triton_kernels", "capabilities.triton"),
        ("support_piecewise_cuda_graph", "piecewise_graph", "capabilities.piecewise"),
        ("get_graph_runer_cls", "get_graph_runner_cls", "graph_runner"),
    ],
)
def test_a_name_that_says_the_same(lost: str, choice: str, key: str) -> None:
    assert like_member(lost, [choice, "supports_mamba", "get_name"], key) == choice


@pytest.mark.parametrize(
    ("lost", "choice", "key"),
    [
        ("supports_fp8", "supports_speculative_algorithm", "capabilities.fp8"),
        ("supports_fp8", "supports_fp4", "capabilities.fp8"),
        ("support_cuda_graph", "support_mamba_cache_extra_buffer", "capabilities.graph_capture"),
        ("support_cuda_graph", "piecewise_graph", "capabilities.cuda_graph"),
        ("get_nsa_kv_pool_cls", "get_mha_kv_pool_cls", "kv_pool.nsa"),
        ("get_mla_kv_pool_cls", "get_mha_kv_pool_cls", "kv_pool.mla"),
        ("get_graph_runner_cls", "get_paged_allocator_cls", "graph_runner"),
        ("get_cls", "get_kv_pool_cls", "methods.get_cls"),
    ],
)
def test_a_name_that_shares_its_frame_alone(lost: str, choice: str, key: str) -> None:
    assert like_member(lost, [choice], key) is None


GRAPHS = (
    '{sglang: "<0.5.18", method: support_cuda_graph}\n'
    '    - {sglang: ">=0.5.18", field: capabilities.graph_capture}'
)


def tip(bench: Bench) -> str:
    (found,) = [f for f in bench.findings() if f.code == "KA201"]
    return found.suggestion or ""


def test_a_flag_that_is_on_is_not_advised_away(bench: Bench) -> None:
    """No field is called as the key: those that share a word are named, and nothing is chosen."""
    lost = bench.edit(MAP, GRAPHS, "{method: support_cuda_graph}")
    renamed = lost.edit(INTERFACE, "graph_capture: bool", "device_graph_replay: bool")
    assert tip(renamed).startswith("if it is one of capabilities.device_graph_replay now: ")
    gone = lost.edit(INTERFACE, "graph_capture: bool", "replay: bool")
    said = tip(gone)
    assert said.startswith("look in sglang/srt/platforms/interface.py for what upstream asks")
    assert "left_at_default" not in said


def test_a_method_that_asks_for_something_else_is_no_flag(bench: Bench) -> None:
    lost = bench.edit(MAP, GRAPHS, "{method: support_cuda_graph}").edit(
        INTERFACE,
        "graph_capture: bool",
        "replay: bool",
    )
    more = "...\n\n            def supports_cuda_graph(self, kind) -> bool:"
    asks = lost.edit(
        INTERFACE, "supports_mamba(self) -> bool:", f"supports_mamba(self) -> bool: {more}"
    )
    assert "supports_cuda_graph" not in tip(asks)


def test_a_name_that_spells_another_key_is_not_taken(bench: Bench) -> None:
    assert "get_default_attention_backend}" in bench.workspace[MAP]
    lost = bench.edit(MAP, "get_graph_runner_cls}", "get_attention_backend_cls}")
    assert "get_default_attention_backend" not in tip(lost)
    assert like_member("get_attention_backend_cls", ["get_default_attention_backend"])

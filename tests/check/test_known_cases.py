"""What happened to real symbols from release to release: each is found as what it is."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from kunlun_adapt.check import check_release
from kunlun_adapt.diagnostics import Finding, Severity
from kunlun_adapt.documents import load_catalog
from kunlun_adapt.upstream import Resolver, open_release
from tests.check.said import codes, only

pytestmark = pytest.mark.upstream

MAP = """\
apiVersion: kunlun-adapt/v1
kind: PlatformMap
name: kunlun
sglang: ">=0.5.11,<0.5.24"
device:
  name: kunlun
  probe: {module: torch_xmlir}
  profiles:
    card: {reports_as: cuda, dispatch_key: cuda, distributed_backend: nccl}
    simulator: {reports_as: cpu, dispatch_key: native, distributed_backend: gloo}
hooks:
"""


@cache
def facts(version: str) -> Resolver:
    return Resolver(open_release(version))


Check = Callable[..., list[Finding]]


@pytest.fixture
def check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Check:
    """Check planned hooks, each given as its type and its place, and return what is said of them.

    That they are planned is left out, and so is how upstream uses them, which takes the index.
    """
    monkeypatch.setattr("kunlun_adapt.check.usage.found", lambda context: ())

    def run(version: str, *hooks: tuple[str, str]) -> list[Finding]:
        text = MAP
        for number, (type, place) in enumerate(hooks):
            text += (
                f"  - id: tried-{number}\n    why: this test tries it\n    status: planned\n"
                f"    type: {type}\n    at:\n      - {{{place}}}\n"
            )
        (tmp_path / "platform_map.yaml").write_text(text, encoding="utf-8")
        report = check_release(load_catalog(tmp_path), facts(version))
        mine = [f for f in report.findings if (f.binding or "").startswith("tried-")]
        return [f for f in mine if f.severity is not Severity.INFO]

    return run


NSA = "sglang.srt.layers.attention.nsa_backend.NativeSparseAttnBackend"


def test_the_sparse_backend_is_there_then_dangles_then_is_gone(check: Check) -> None:
    hook = ("replace", f"target: {NSA}")
    assert check("0.5.11", hook) == []
    for version in ("0.5.13", "0.5.20"):
        found = only(check(version, hook), "KA103")
        assert found.upstream is not None
        assert found.upstream.file == "sglang/srt/layers/attention/nsa_backend.py"
        assert "dsa_backend" in found.message
    gone = only(check("0.5.21", hook), "KA101")
    assert "has no module sglang.srt.layers.attention.nsa_backend" in gone.message


def test_what_stands_beside_a_dangling_import_cannot_be_imported_either(check: Check) -> None:
    beside = NSA.replace("NativeSparse", "DeepseekSparse")
    findings = check("0.5.20", ("replace", f"target: {beside}"))
    assert sorted(codes(findings)) == ["KA103", "KA108"]
    found = findings[0]
    assert "cannot be imported in sglang 0.5.20" in found.message
    assert found.suggestion == (
        "name the definition: target: "
        "sglang.srt.layers.attention.dsa_backend.DeepseekSparseAttnBackend"
    )


def test_the_affinity_call_loses_three_of_four_arguments(check: Check) -> None:
    target = "sglang.srt.utils.common.set_gpu_proc_affinity"
    how = "args: {gpu_id: gpu_id}, ignores: {pp_size: $any, tp_size: $any, nnodes: $any}"
    hook = ("replace", f"target: {target}, {how}")
    assert check("0.5.20", hook) == []
    findings = check("0.5.21", hook)
    assert codes(findings) == ["KA105"] * 3
    assert all("upstream: set_gpu_proc_affinity(gpu_id)" in f.message for f in findings)
    gone = {f.message.split("'")[1] for f in findings}
    assert gone == {"pp_size", "tp_size", "nnodes"}


def test_a_parameter_is_put_before_the_grammar_barrier(check: Check) -> None:
    target = "sglang.srt.speculative.eagle_worker_v2.EAGLEWorkerV2.verify"
    hook = ("around", f"target: {target}, args: {{batch: batch, barrier: grammar_barrier}}")
    assert check("0.5.17", hook) == []
    found = only(check("0.5.21", hook), "KA114")
    assert "'pp_proxy_tensors' stands before 'grammar_barrier'" in found.message
    assert found.suggestion == "`ignores: {pp_proxy_tensors: null}`"
    assert found.severity is Severity.ERROR


def test_the_dispatch_moves_to_a_base_class_and_then_away(check: Check) -> None:
    target = "sglang.srt.layers.utils.multi_platform.MultiPlatformOp.dispatch_forward"
    hook = ("around", f"target: {target}")
    assert check("0.5.17", hook) == []
    found = only(check("0.5.18", hook), "KA109")
    assert "sglang.kernels.fused_op.BaseFusedOp.dispatch_forward" in (found.suggestion or "")
    assert "neither a subclass nor a use" in found.message and found.severity is Severity.ERROR
    # What other parts of upstream call alike is no place to bind.
    only(check("0.5.23", hook), "KA101")


def test_the_cache_writer_moves_to_another_module(check: Check) -> None:
    names = (
        "out_cache_loc, req_pool_indices_tensor, req_pool_indices_cpu, prefix_lens_tensor, "
        "prefix_lens_cpu, seq_lens_tensor, seq_lens_cpu, extend_lens_tensor, extend_lens_cpu, "
        "prefix_tensors, req_to_token_pool"
    )
    target = "sglang.srt.mem_cache.common.write_cache_indices"
    hook = ("replace", f"target: {target}, args: {{pool: req_to_token_pool}}, ignores: [{names}]")
    assert check("0.5.15", hook) == []
    found = only(check("0.5.17", hook), "KA102")
    moved = "sglang.srt.mem_cache.allocation.write_cache_indices"
    assert found.target == target and moved in found.message
    assert f'- {{sglang: ">=0.5.17", target: {moved}, args: {{pool: req_to_token_pool}}' in (
        found.suggestion or ""
    )


def test_rotary_embedding_is_hooked_at_both_of_its_paths(check: Check) -> None:
    package = "sglang.srt.layers.rotary_embedding"
    how = (
        "args: {head_size: head_size, base: base}, ignores: [rotary_dim, max_position, "
        "is_neox_style, rope_scaling, dtype, partial_rotary_factor, dual_chunk_attention_config]"
    )
    findings = check(
        "0.5.20",
        ("replace", f"target: {package}.get_rope, {how}"),
        ("replace", f"target: {package}.factory.get_rope, {how}"),
    )
    by_code = {f.code: f for f in findings}
    assert sorted(by_code) == ["KA108", "KA401"]
    assert by_code["KA108"].binding == "tried-0"
    assert by_code["KA108"].suggestion == f"name the definition: target: {package}.factory.get_rope"
    assert f"both names mean {package}.factory.get_rope" in by_code["KA401"].message


@pytest.mark.parametrize(
    ("target", "code", "suggests"),
    [
        ("sglang.srt.layers.k3_gemm_ar._ENABLED", "KA122", "use `type: set`"),
        ("sglang.srt.layers.attention.attention_registry.ATTENTION_BACKENDS", "KA122", "register"),
        ("sglang.srt.managers.schedule_batch.ScheduleBatch.is_empty", None, None),
        ("sglang.srt.managers.schedule_batch.Req.seqlen", "KA111", "property object"),
        ("sglang.srt.layers.attention.attention_registry", "KA110", "name a function in it"),
    ],
)
def test_a_call_hook_on_what_is_no_function(
    check: Check, target: str, code: str | None, suggests: str | None
) -> None:
    findings = check("0.5.20", ("around", f"target: {target}"))
    if code is None:
        assert findings == []
    else:
        assert suggests is not None and suggests in (only(findings, code).suggestion or "")


def test_a_variant_for_another_device_is_not_the_one_that_is_bound(check: Check) -> None:
    module = "sglang.srt.distributed.device_communicators.custom_all_reduce_ops"
    symbol = facts("0.5.20").resolve(f"{module}.init_custom_ar")
    how = "args: {rank: rank}, ignores: [ipc_tensors, rank_data, full_nvlink]"
    findings = check("0.5.20", ("around", f"target: {module}.init_custom_ar, {how}"))
    assert findings == [], symbol


def test_the_name_that_is_looked_up_is_the_one_for_this_device() -> None:
    found = facts("0.5.20").resolve("sglang.srt.layers.moe.topk.biased_grouped_topk")
    assert getattr(found, "resolved", None) == "sglang.srt.layers.moe.topk.biased_grouped_topk_gpu"

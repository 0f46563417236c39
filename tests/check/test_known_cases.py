"""What happened to real symbols from release to release: each is found as what it is.

All rules run, those that look how upstream uses a target included. Every finding has to point at
the YAML that names the target and at the line of the release that it speaks of, and what it
suggests has to leave nothing to say.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kunlun_adapt.check import check_release
from kunlun_adapt.diagnostics import Finding, Severity
from kunlun_adapt.documents import load_catalog
from tests.check.real import facts, upstream_line, yaml_at
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
interface:
  process.scheduler:
    - {call: sglang.srt.managers.scheduler.run_scheduler_process}
  process.detokenizer:
    - {sglang: "<0.5.22", call: sglang.srt.managers.detokenizer_manager.run_detokenizer_process,
       loads_plugins: false}
    - {sglang: ">=0.5.22", call: sglang.srt.managers.detokenizer_manager.run_detokenizer_process}
hooks:
"""

Hook = tuple[str, ...]
Check = Callable[..., list[Finding]]


@pytest.fixture
def check(tmp_path: Path) -> Check:
    """Check planned hooks, each given as its type, its place and more lines; return what is said.

    That they are planned is left out. Where a finding stands is compared with what stands there.
    """

    def run(version: str, *hooks: Hook) -> list[Finding]:
        text = MAP
        for number, (type, place, *lines) in enumerate(hooks):
            more = "".join(f"    {line}\n" for line in lines)
            text += (
                f"  - id: tried-{number}\n    why: this test tries it\n    status: planned\n"
                f"    type: {type}\n{more}    at:\n      - {{{place}}}\n"
            )
        (tmp_path / "platform_map.yaml").write_text(text, encoding="utf-8")
        report = check_release(load_catalog(tmp_path), facts(version))
        mine = [
            f
            for f in report.findings
            if (f.binding or "").startswith("tried-") or f.code == "KA407"
        ]
        told = [f for f in mine if f.severity is not Severity.INFO]
        for found in told:
            named = found.code in ("KA105", "KA407")  # these may stand at a name of their own
            assert named or yaml_at(text, found).startswith(found.target or "?"), found
        return told

    return run


NSA = "sglang.srt.layers.attention.nsa_backend.NativeSparseAttnBackend"
DSA = "sglang.srt.layers.attention.dsa_backend.DeepseekSparseAttnBackend"
full = pytest.mark.full


def releases(plain: str, more: str) -> list[object]:
    """All releases of a range: those whose wheels other tests read too, and the rest in full."""
    return [*plain.split(), *(pytest.param(version, marks=full) for version in more.split())]


@pytest.mark.parametrize("version", releases("0.5.11", "0.5.12 0.5.12.post1"))
def test_the_sparse_backend_is_there(check: Check, version: str) -> None:
    assert check(version, ("replace", f"target: {NSA}")) == []


@pytest.mark.parametrize(
    "version",
    releases(
        "0.5.13 0.5.15 0.5.17 0.5.18 0.5.19 0.5.20",
        "0.5.13.post1 0.5.14 0.5.15.post1 0.5.16",
    ),
)
def test_the_sparse_backend_dangles(check: Check, version: str) -> None:
    found = only(check(version, ("replace", f"target: {NSA}")), "KA103")
    assert "is re-exported" in found.message and f"in sglang {version}" in found.message
    assert "dsa_backend, which has no NativeSparseAttnBackend" in found.message
    assert upstream_line(version, found) == "NativeSparseAttnBackend,"
    assert str(found.upstream).startswith("sglang/srt/layers/attention/nsa_backend.py:")
    # In the module of the old name nothing can be bound, the new class included.
    assert DSA in (found.suggestion or "") and "nsa_backend" not in (found.suggestion or "")


@pytest.mark.parametrize("version", ["0.5.21", "0.5.22", "0.5.23"])
def test_the_sparse_backend_is_gone(check: Check, version: str) -> None:
    gone = only(check(version, ("replace", f"target: {NSA}")), "KA101")
    assert f"{version} has no module sglang.srt.layers.attention.nsa_backend" in gone.message


def test_what_is_suggested_for_the_sparse_backend_can_be_bound(check: Check) -> None:
    assert check("0.5.20", ("replace", f"target: {DSA}")) == []


def test_what_stands_beside_a_dangling_import_cannot_be_imported_either(check: Check) -> None:
    beside = NSA.replace("NativeSparse", "DeepseekSparse")
    findings = check("0.5.20", ("replace", f"target: {beside}"))
    assert sorted(codes(findings)) == ["KA103", "KA108"]
    found = findings[0]
    assert "cannot be imported in sglang 0.5.20" in found.message
    assert upstream_line("0.5.20", found) == "NativeSparseAttnBackend,"
    assert found.suggestion == f"name the definition: target: {DSA}"


AFFINITY = "target: sglang.srt.utils.common.set_gpu_proc_affinity, args: {gpu_id: gpu_id}"


def test_the_affinity_call_loses_three_of_four_arguments(check: Check) -> None:
    four = ("replace", f"{AFFINITY}, ignores: {{pp_size: $any, tp_size: $any, nnodes: $any}}")
    assert check("0.5.20", four) == []
    found = only(check("0.5.21", four), "KA105")
    assert found.message.startswith("ignores 'pp_size', 'tp_size' and 'nnodes', which upstream")
    assert "upstream: set_gpu_proc_affinity(gpu_id)" in found.message
    assert found.suggestion == "drop them: `ignores: {}`"
    assert upstream_line("0.5.21", found).startswith("def set_gpu_proc_affinity(")
    assert check("0.5.21", ("replace", AFFINITY)) == []


VERIFY = (
    "target: sglang.srt.speculative.eagle_worker_v2.EAGLEWorkerV2.verify, "
    "args: {batch: batch, barrier: grammar_barrier}"
)


def test_a_parameter_is_put_before_the_grammar_barrier(check: Check) -> None:
    assert check("0.5.17", ("around", VERIFY)) == []
    found = only(check("0.5.21", ("around", VERIFY)), "KA114")
    assert "'pp_proxy_tensors' stands before 'grammar_barrier'" in found.message
    assert upstream_line("0.5.21", found).startswith("def verify(")
    assert found.suggestion == "`ignores: {pp_proxy_tensors: null}`"
    assert found.severity is Severity.ERROR
    assert check("0.5.21", ("around", f"{VERIFY}, {found.suggestion.strip('`')}")) == []


@pytest.mark.parametrize("version", releases("0.5.11 0.5.15", "0.5.12 0.5.13 0.5.14"))
def test_the_grammar_barrier_is_not_there_yet(check: Check, version: str) -> None:
    found = only(check(version, ("around", VERIFY)), "KA105")
    assert "'barrier' reads 'grammar_barrier', which upstream does not have" in found.message
    assert upstream_line(version, found).startswith("def verify(self, batch")
    assert found.suggestion == "drop it: `args: {batch: batch}`"
    place = VERIFY.partition(", args")[0]
    assert check(version, ("around", f"{place}, {found.suggestion.partition(': ')[2][1:-1]}")) == []


def test_the_dispatch_moves_to_a_base_class_and_then_away(check: Check) -> None:
    target = "sglang.srt.layers.utils.multi_platform.MultiPlatformOp.dispatch_forward"
    hook = ("around", f"target: {target}")
    assert check("0.5.17", hook) == []
    found = only(check("0.5.18", hook), "KA109")
    base = "sglang.kernels.fused_op.BaseFusedOp.dispatch_forward"
    assert found.suggestion == f"name the class that defines it: target: {base}"
    assert "neither a subclass nor a use" in found.message and found.severity is Severity.ERROR
    assert upstream_line("0.5.18", found).startswith("def dispatch_forward(self")
    assert check("0.5.18", ("around", f"target: {base}")) == []
    # What other parts of upstream call alike is no place to bind.
    gone = only(check("0.5.23", hook), "KA101")
    assert "MultiPlatformOp does not define it" in gone.message
    assert upstream_line("0.5.23", gone).startswith("class MultiPlatformOp(")


def test_the_cache_writer_moves_to_another_module(check: Check) -> None:
    names = (
        "out_cache_loc, req_pool_indices_tensor, req_pool_indices_cpu, prefix_lens_tensor, "
        "prefix_lens_cpu, seq_lens_tensor, seq_lens_cpu, extend_lens_tensor, extend_lens_cpu, "
        "prefix_tensors, req_to_token_pool"
    )
    target = "sglang.srt.mem_cache.common.write_cache_indices"
    how = f"args: {{pool: req_to_token_pool}}, ignores: [{names}]"
    assert check("0.5.15", ("replace", f"target: {target}, {how}")) == []
    found = only(check("0.5.17", ("replace", f"target: {target}, {how}")), "KA102")
    moved = "sglang.srt.mem_cache.allocation.write_cache_indices"
    assert found.target == target and moved in found.message
    assert upstream_line("0.5.17", found) == "def write_cache_indices("
    assert f'- {{sglang: ">=0.5.17", target: {moved}, args: {{pool: req_to_token_pool}}' in (
        found.suggestion or ""
    )
    assert check("0.5.17", ("replace", f"target: {moved}, {how}")) == []


ROPE = "sglang.srt.layers.rotary_embedding"
HOW = (
    "args: {head_size: head_size, base: base}, ignores: [rotary_dim, max_position, "
    "is_neox_style, rope_scaling, dtype, partial_rotary_factor, dual_chunk_attention_config]"
)


@pytest.mark.parametrize(
    ("type", "code", "outcome"),
    [
        ("replace", "KA401", "both patch {path} (both names mean {path}); the last one wins"),
        ("around", "KA403", "both hook {path} (both names mean {path})"),
    ],
)
def test_rotary_embedding_is_hooked_at_both_of_its_paths(
    check: Check, type: str, code: str, outcome: str
) -> None:
    handed, defined = f"{ROPE}.get_rope", f"{ROPE}.factory.get_rope"
    findings = check(
        "0.5.20", (type, f"target: {handed}, {HOW}"), (type, f"target: {defined}, {HOW}")
    )
    by_code = {f.code: f for f in findings}
    assert sorted(by_code) == ["KA108", code]
    twice, renamed = by_code[code], by_code["KA108"]
    assert outcome.format(path=defined) in twice.message
    assert upstream_line("0.5.20", twice) == "def get_rope("
    assert renamed.binding == "tried-0"
    assert renamed.suggestion == f"name the definition: target: {defined}"
    assert upstream_line("0.5.20", renamed).startswith(f"from {ROPE}.factory import get_rope,")
    assert check("0.5.20", (type, f"target: {defined}, {HOW}")) == []


ENABLED = "sglang.srt.layers.k3_gemm_ar._ENABLED"
TOP_K = "sglang.srt.sampling.sampling_params.TOP_K_ALL"
BACKENDS = "sglang.srt.layers.attention.attention_registry.ATTENTION_BACKENDS"


@pytest.mark.parametrize("type", ["before", "after", "around", "replace"])
@pytest.mark.parametrize(
    ("target", "holds", "suggests"),
    [
        (ENABLED, "_ENABLED is a constant (False); upstream's HookRegistry would", "`type: set`"),
        (TOP_K, "TOP_K_ALL is a constant (1 << 30); upstream's HookRegistry would", "`type: set`"),
        (BACKENDS, "ATTENTION_BACKENDS is a constant ({}), which nobody calls", "`type: extend`"),
    ],
)
def test_a_constant_is_no_function(
    check: Check, type: str, target: str, holds: str, suggests: str
) -> None:
    findings = [f for f in check("0.5.19", (type, f"target: {target}")) if f.code != "KA117"]
    found = only(findings, "KA122")
    assert found.severity is Severity.ERROR
    assert holds in found.message and suggests in (found.suggestion or "")
    assert upstream_line("0.5.19", found).startswith(target.rpartition(".")[2])


def test_a_constant_that_nobody_copies_is_set(check: Check) -> None:
    assert check("0.5.19", ("set", f"target: {ENABLED}")) == []


def test_a_constant_that_is_set_keeps_its_copies(check: Check) -> None:
    found = only(check("0.5.19", ("set", f"target: {TOP_K}")), "KA117")
    assert upstream_line("0.5.19", found) == (
        "from sglang.srt.sampling.sampling_params import TOP_K_ALL"
    )
    for file in ("layers/sampler", "managers/scheduler", "sampling/sampling_batch_info"):
        assert f"sglang/srt/{file}.py:" in found.message
        assert f"sglang.srt.{file.replace('/', '.')}.TOP_K_ALL" in (found.suggestion or "")
    # A module that the scheduler loads later takes what is set by then.
    assert "dspark" not in found.message
    repair = (found.suggestion or "").partition("`")[2].strip("`")
    left = only(check("0.5.19", ("set", f"target: {TOP_K}", repair)), "KA117")
    # A default of a field is no name that could be repaired.
    assert left.message.count("sglang/srt/") == 1
    assert upstream_line("0.5.19", left) == "top_k: int = TOP_K_ALL"


def test_a_list_that_is_handed_on_is_no_copy_of_itself(check: Check) -> None:
    target = "sglang.srt.server_args.ATTENTION_BACKEND_CHOICES"
    findings = check("0.5.22", ("set", f"target: {target}"))
    for found in (f for f in findings if f.code == "KA117"):
        assert "srt/server_args.py" not in found.message
        tip = found.suggestion or ""
        assert target not in tip and "choices.ATTENTION_BACKEND_CHOICES" not in tip


SEQLEN = "sglang.srt.managers.schedule_batch.Req.seqlen"


@pytest.mark.parametrize("type", ["before", "after", "around", "replace"])
def test_a_property_is_no_method(check: Check, type: str) -> None:
    found = only(check("0.5.19", (type, f"target: {SEQLEN}")), "KA111")
    assert found.severity is Severity.ERROR
    assert "Req.seqlen is a property; a hook would turn it into a method" in found.message
    assert found.suggestion == "use `type: set` with an `impl` that is a property object"
    assert upstream_line("0.5.19", found) == "def seqlen(self) -> int:"
    assert check("0.5.19", ("set", f"target: {SEQLEN}")) == []


@pytest.mark.parametrize(
    ("target", "code", "suggests"),
    [
        ("sglang.srt.managers.schedule_batch.ScheduleBatch.is_empty", None, None),
        ("sglang.srt.layers.attention.attention_registry", "KA110", "name a function in it"),
    ],
)
def test_a_method_is_called_and_a_module_is_not(
    check: Check, target: str, code: str | None, suggests: str | None
) -> None:
    findings = check("0.5.19", ("around", f"target: {target}"))
    if code is None:
        assert findings == []
    else:
        assert suggests is not None and suggests in (only(findings, code).suggestion or "")


DETOKENIZER = "sglang.srt.managers.detokenizer_manager.DetokenizerManager"


@pytest.mark.parametrize("version", ["0.5.21", "0.5.22"])
@pytest.mark.parametrize("process", ["detokenizer", "scheduler, detokenizer", ""])
@pytest.mark.parametrize("type", ["replace", "set"])
def test_the_detokenizers_class_is_replaced(
    check: Check, version: str, process: str, type: str
) -> None:
    """Its process's function holds the class already, wherever plugins are loaded."""
    lines = [f"process: [{process}]"] if process else []
    held = only(check(version, (type, f"target: {DETOKENIZER}", *lines)), "KA118")
    assert "DetokenizerManager is a default argument in" in held.message
    assert upstream_line(version, held) == "detokenizer_manager_class=DetokenizerManager,"


def test_the_detokenizer_loads_plugins_since_0_5_22(
    check: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    apart = '"<0.5.22", call: sglang.srt.managers.detokenizer_manager.run_detokenizer_process,\n'
    assert apart + "       loads_plugins: false}" in MAP
    monkeypatch.setitem(globals(), "MAP", MAP.replace(apart, apart[:-2]).replace(
        "       loads_plugins: false}", "}"
    ))  # fmt: skip
    any_hook = ("around", "target: sglang.srt.managers.schedule_batch.ScheduleBatch.is_empty")
    never = only(check("0.5.21", any_hook), "KA407")
    assert never.severity is Severity.ERROR
    assert "never calls load_plugins() in sglang 0.5.21" in never.message
    assert upstream_line("0.5.21", never) == "def run_detokenizer_process("
    assert "`loads_plugins: false`" in (never.suggestion or "")
    assert check("0.5.22", any_hook) == []


def test_a_variant_for_another_device_is_not_the_one_that_is_bound(check: Check) -> None:
    module = "sglang.srt.distributed.device_communicators.custom_all_reduce_ops"
    symbol = facts("0.5.20").resolve(f"{module}.init_custom_ar")
    how = "args: {rank: rank}, ignores: [ipc_tensors, rank_data, full_nvlink]"
    findings = check("0.5.20", ("around", f"target: {module}.init_custom_ar, {how}"))
    assert findings == [], symbol


def test_the_name_that_is_looked_up_is_the_one_for_this_device() -> None:
    found = facts("0.5.20").resolve("sglang.srt.layers.moe.topk.biased_grouped_topk")
    assert getattr(found, "resolved", None) == "sglang.srt.layers.moe.topk.biased_grouped_topk_gpu"

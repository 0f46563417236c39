"""Codes that the shipped workspace does not give: each by one edit of it, on a real release."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from kunlun_adapt.check import check_release
from kunlun_adapt.diagnostics import Finding, Severity
from kunlun_adapt.documents import load_catalog
from kunlun_adapt.upstream import Lock, lock_release
from tests.check.real import facts, upstream_line, yaml_at
from tests.check.said import codes, only

pytestmark = pytest.mark.upstream

ROOT = Path(__file__).resolve().parents[2]
RELEASE = "0.5.19"
LOCAL = "sglang.srt.distributed.device_communicators.custom_all_reduce_ops.init_custom_qr"
HANDED_ON = "sglang.srt.layers.attention.dsa_backend.get_valid_kv_indices"

Check = Callable[..., list[Finding]]


@pytest.fixture
def check(tmp_path: Path) -> Check:
    """Check the workspace after one edit of its map; leave out what is only information.

    Each finding has to stand at the path that it is about.
    """
    shutil.copy(ROOT / "platform_map.yaml", tmp_path)
    for folder in ("operator_recipes", "recipes"):
        shutil.copytree(ROOT / folder, tmp_path / folder)

    def run(old: str, new: str, lock: Lock | None = None) -> list[Finding]:
        path = tmp_path / "platform_map.yaml"
        text = (ROOT / "platform_map.yaml").read_text(encoding="utf-8")
        assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times"
        text = text.replace(old, new)
        path.write_text(text, encoding="utf-8")
        report = check_release(load_catalog(tmp_path), facts(RELEASE), lock=lock)
        told = [f for f in report.findings if f.severity is not Severity.INFO]
        if lock is not None:
            told = [f for f in told if f.binding == "tried"]  # the others are not in that lock
        for found in told:
            assert found.target is not None and yaml_at(text, found).startswith(found.target)
        return told

    return run


def hook(target: str, how: str = "", type: str = "around", more: str = "") -> str:
    tail = f", {how}" if how else ""
    return f"""
  - id: tried
    why: this test tries it
    status: planned
    type: {type}
{more}    at:
      - {{target: {target}{tail}}}
"""


HOOKS = "\nhooks:\n"


def test_what_is_only_there_for_another_vendor(check: Check) -> None:
    found = only(
        check(HOOKS, HOOKS + hook(LOCAL, "args: {rank: rank}, ignores: [world_size, qr_max_size]")),
        "KA112",
    )
    assert found.severity is Severity.ERROR
    assert found.message == (
        f"{LOCAL} exists only where `IS_QUICK_AR_AVAILABLE and _is_hip` holds, which it does not "
        "in the profiles card (reports as cuda), simulator (reports as cpu) and simulator_cuda "
        "(reports as cuda)"
    )
    assert upstream_line(RELEASE, found) == "def init_custom_qr("
    assert found.suggestion == (
        f"bind what upstream runs on this platform instead, or end the range before {RELEASE}"
    )


def test_what_is_only_imported_for_another_vendor(check: Check) -> None:
    how = "args: {bs: bs}, ignores: [page_table_1, kv_indptr, kv_indices]"
    findings = check(HOOKS, HOOKS + hook(HANDED_ON, how))
    # An operator of the workspace binds the definition, which is there on every device.
    assert sorted(codes(findings)) == ["KA108", "KA112", "KA405"]
    found = next(f for f in findings if f.code == "KA112")
    assert "exists only where `_is_hip` holds" in found.message
    assert upstream_line(RELEASE, found) == (
        "from sglang.kernels.ops.attention.dsa.triton_kernel import get_valid_kv_indices"
    )


HF_SIZE = "sglang.srt.layers.layernorm.is_supported_rmsnorm_hf_hidden_size"
SIZE = "args: {size: hidden_size}"
QUANT = "sglang.kernels.ops.quantization.fp8_kernel.per_token_group_quant_fp8"


def test_a_fallback_that_names_its_parameter_otherwise(check: Check) -> None:
    findings = check(HOOKS, HOOKS + hook(HF_SIZE, SIZE))
    assert sorted(codes(findings)) == ["KA108", "KA113"]
    found = next(f for f in findings if f.code == "KA113")
    assert found.severity is Severity.WARNING
    assert f"{HF_SIZE} has 2 signatures" in found.message
    assert "(hidden_size) under `_is_cuda and try` (sglang/kernels/ops/" in found.message
    assert "(d) under `_is_cuda and except ImportError` (sglang/srt/layers/" in found.message
    assert found.message.endswith("`args` is read from the first")
    assert upstream_line(RELEASE, found).startswith("def is_supported_rmsnorm_hf_hidden_size(hid")
    # The second has no path of its own.
    assert found.suggestion == (
        "make sure that the guard of the first holds where the binding is for, and say so in "
        "`accepts: [{code: KA113, why: …}]`"
    )
    said = "    accepts: [{code: KA113, why: the kernels are there}, {code: KA108, why: tried}]\n"
    assert check(HOOKS, HOOKS + hook(HF_SIZE, SIZE, more=said)) == []


def test_a_name_for_one_function_or_another(check: Check) -> None:
    names = "group_size, eps, column_major_scales, scale_tma_aligned, scale_ue8m0, "
    how = f"args: {{x: x}}, ignores: [{names}fuse_silu_and_mul, masked_m]"
    findings = check(HOOKS, HOOKS + hook(QUANT, how))
    found = next(f for f in findings if f.code == "KA113")
    assert "under `_is_cuda` (sglang/" in found.message
    assert "under `not _is_cuda` (sglang/" in found.message
    assert upstream_line(RELEASE, found) == "def sglang_per_token_group_quant_fp8("
    module = QUANT.rpartition(".")[0]
    assert found.suggestion == (
        f"bind each under its own path: target: {module}.sglang_per_token_group_quant_fp8 and "
        f"target: {module}._per_token_group_quant_8bit_raw"
    )
    # A card always passes for CUDA.
    card = check(HOOKS, HOOKS + hook(QUANT, how, more="    profiles: [card]\n"))
    assert "KA113" not in codes(card)


def test_a_name_that_is_imported_and_replaced_on_one_device(check: Check) -> None:
    target = "sglang.srt.layers.attention.linear.gdn_backend.causal_conv1d_fn"
    found = {f.code: f for f in check(HOOKS, HOOKS + hook(target, "args: {x: x}"))}
    both = (
        "sglang.kernels.ops.mamba.causal_conv1d_triton.causal_conv1d_fn",
        "sglang.srt.layers.attention.mamba.causal_conv1d.causal_conv1d_fn",
    )
    assert found["KA113"].suggestion == (
        f"bind each under its own path: target: {both[0]} and target: {both[1]}"
    )
    # The module's own calls go through the name that is bound here.
    assert f"{target} is a re-export of {both[0]}" in found["KA108"].message


SM = "sglang.srt.utils.common.get_device_sm_nvidia_smi"


def test_a_function_that_nothing_calls(check: Check) -> None:
    found = only(check(HOOKS, HOOKS + hook(SM)), "KA119")
    assert found.severity is Severity.WARNING
    assert found.message == (
        f"nothing in sglang {RELEASE} calls or names get_device_sm_nvidia_smi outside of tests"
    )
    assert upstream_line(RELEASE, found) == "def get_device_sm_nvidia_smi():"
    assert (found.suggestion or "").startswith("bind what upstream uses instead, or leave it out")


def test_a_class_that_nothing_derives_from(check: Check) -> None:
    target = "sglang.srt.layers.utils.multi_platform.MultiPlatformOp"
    found = only(check(HOOKS, HOOKS + hook(target, type="replace")), "KA119")
    assert found.message == (
        f"nothing in sglang {RELEASE} makes or derives from MultiPlatformOp outside of tests"
    )
    assert upstream_line(RELEASE, found) == "class MultiPlatformOp(BaseFusedOp):"


LAST_LOC = (
    "      - target: sglang.srt.mem_cache.allocation.get_last_loc\n"
    "        args: {req_to_token: req_to_token, req_pool_indices: req_pool_indices_tensor, "
    "prefix_lens: prefix_lens_tensor}\n"
)
OLD = LAST_LOC.replace("allocation", "common")
EXCLUDED = f'    excluded: [{{sglang: "=={RELEASE}", why: this test tries it}}]\n'


def test_what_is_excluded_and_stands_in_another_module(check: Check) -> None:
    found = only(check(LAST_LOC, OLD + EXCLUDED), "KA121")
    assert found.severity is Severity.WARNING and found.binding == "last-loc"
    path = "sglang.srt.mem_cache.allocation.get_last_loc"
    # The allocator of another vendor has a function of that name too.
    assert found.message == (
        f"last-loc leaves out sglang {RELEASE}, where {path} has the same name"
    )
    assert upstream_line(RELEASE, found) == "def get_last_loc("
    assert found.suggestion is not None
    edit, _, note = found.suggestion.partition("  # ")
    assert note.endswith("; and drop the exclusion")
    # Done as it says nothing is left to say.
    before = OLD.replace("- target", f'- sglang: "<{RELEASE}"\n        target')
    assert check(LAST_LOC, f"{before}      {edit}\n") == []


def test_what_is_excluded_and_has_another_name(check: Check) -> None:
    """`mxfp_supported` of 0.5.17 is called `is_gfx95_supported` two releases later."""
    module = "sglang.srt.utils.common"
    lock, _ = lock_release(facts("0.5.17"), [f"{module}.mxfp_supported"])
    added = hook(f"{module}.mxfp_supported") + EXCLUDED
    found = only(check(HOOKS, HOOKS + added, lock), "KA121")
    assert found.message == (
        f"tried leaves out sglang {RELEASE}, where {module}.is_gfx95_supported has the body that "
        "the lock knows"
    )
    assert upstream_line(RELEASE, found) == "def is_gfx95_supported():"
    assert f"target: {module}.is_gfx95_supported}}" in (found.suggestion or "")

"""The resolver on the real wheels; each is fetched once and then comes from the cache."""

from __future__ import annotations

from functools import cache

import pytest

from kunlun_adapt.upstream import (
    Facts,
    LockFacts,
    Missing,
    Resolver,
    Symbol,
    lock_release,
    open_release,
)

pytestmark = pytest.mark.upstream

RELEASES = ("0.5.17", "0.5.19", "0.5.23")
PLATFORM = "sglang.srt.platforms.interface.SRTPlatform"


@cache
def _facts(version: str) -> Resolver:
    return Resolver(open_release(version))


def _symbol(version: str, path: str) -> Symbol:
    found = _facts(version).resolve(path)
    assert isinstance(found, Symbol), found
    return found


def _missing(version: str, path: str) -> Missing:
    found = _facts(version).resolve(path)
    assert isinstance(found, Missing), found
    return found


def _text(symbol: Symbol) -> str | None:
    return symbol.signature.text() if symbol.signature else None


@pytest.mark.parametrize("version", RELEASES)
def test_names_that_are_in_each_release(version: str) -> None:
    assert _facts(version).version == version
    assert _symbol(version, "sglang.srt").kind == "module"
    assert _symbol(version, "sglang.srt.layers.activation.SiluAndMul").kind == "class"
    assert _symbol(version, "sglang.srt.server_args.ServerArgs").kind == "class"
    assert _symbol(version, "sglang.ServerArgs").kind == "lazy"
    assert _symbol(version, "sglang.srt.platforms.current_platform").kind == "lazy"
    kernel = _symbol(version, "sglang.kernels.ops.activation.activation.silu_and_mul")
    assert kernel.signature is not None
    assert kernel.signature.names[:2] == ("input", "out")


def test_server_args_are_a_dataclass_until_they_are_a_struct() -> None:
    old, new = (_symbol(v, "sglang.srt.server_args.ServerArgs") for v in ("0.5.19", "0.5.23"))
    assert old.signature is not None and old.signature.required() == ("model_path",)
    assert new.signature is None
    assert new.value is None or "defstruct" in new.value


def test_a_signature_moves_between_releases() -> None:
    path = "sglang.srt.utils.common.set_gpu_proc_affinity"
    assert _text(_symbol("0.5.19", path)) == "(pp_size, tp_size, nnodes, gpu_id)"
    assert _text(_symbol("0.5.23", path)) == "(gpu_id)"
    assert _symbol("0.5.19", path).fingerprint != _symbol("0.5.23", path).fingerprint


def test_a_reexport_leads_to_its_definition() -> None:
    found = _symbol("0.5.19", "sglang.srt.utils.set_gpu_proc_affinity")
    assert found.resolved == "sglang.srt.utils.common.set_gpu_proc_affinity"
    assert [place.file for place in found.via] == ["sglang/srt/utils/__init__.py"]


def test_the_dangling_reexport_of_the_sparse_backend() -> None:
    path = "sglang.srt.layers.attention.nsa_backend.NativeSparseAttnBackend"
    found = _missing("0.5.19", path)
    assert found.reason == "dangling_reexport"
    assert found.at is not None and found.at.file.endswith("nsa_backend.py")
    assert _missing("0.5.23", path).reason == "module_missing"
    alias = path.replace("NativeSparse", "DeepseekSparse")
    assert _symbol("0.5.19", alias).kind == "class"


def test_platforms_do_not_exist_in_0_5_9() -> None:
    found = _missing("0.5.9", PLATFORM)
    assert (found.reason, found.deepest) == ("module_missing", "sglang.srt")


@pytest.mark.parametrize(
    ("version", "present", "absent"),
    [
        ("0.5.19", {"support_cuda_graph", "get_dsa_kv_pool_cls"}, {"get_kv_pool_cls"}),
        ("0.5.23", {"capabilities", "get_kv_pool_cls"}, {"support_cuda_graph"}),
    ],
)
def test_members_of_the_platform_class(version: str, present: set[str], absent: set[str]) -> None:
    members = _facts(version).members(PLATFORM)
    assert present <= members.keys()
    assert not absent & members.keys()
    assert members["get_device"].inherited_from == ("sglang.srt.platforms.device_mixin.DeviceMixin")
    assert members["get_device"].signature is not None


def test_a_method_is_found_on_the_base() -> None:
    found = _symbol("0.5.19", "sglang.srt.layers.layernorm.RMSNorm.forward")
    assert found.inherited_from == "sglang.kernels.fused_op.BaseFusedOp"
    assert (
        _symbol("0.5.19", "sglang.srt.layers.layernorm.RMSNorm.forward_cuda").inherited_from is None
    )


def test_variants_under_guards() -> None:
    module = "sglang.srt.distributed.device_communicators.custom_all_reduce_ops"
    found = _symbol("0.5.19", f"{module}.init_custom_ar")
    texts = {_text(found)} | {v.signature.text() for v in found.variants if v.signature}
    assert len(texts) == 2
    assert any(v.guard and v.guard.endswith("_is_hip") for v in found.variants)


def test_a_kernel_that_left_its_package_is_found_again() -> None:
    path = "sglang.srt.mem_cache.common.write_req_to_token_pool_triton"
    then = _symbol("0.5.9", path)
    assert then.kind == "triton_kernel"
    found = _facts("0.5.19").suggest(_missing("0.5.19", path), then.fingerprint)
    assert found.suggestions[0].path == (
        "sglang.kernels.ops.memory.common.write_req_to_token_pool_triton"
    )


def test_a_misspelt_name_is_found() -> None:
    path = "sglang.srt.utils.common.set_gpu_proc_afinity"
    found = _facts("0.5.19").suggest(_missing("0.5.19", path))
    assert found.suggestions[0].path == "sglang.srt.utils.common.set_gpu_proc_affinity"


def test_the_lock_says_what_the_release_says() -> None:
    live = _facts("0.5.19")
    lock, missing = lock_release(
        live, ["sglang.srt.utils.set_gpu_proc_affinity"], classes=[PLATFORM]
    )
    locked: Facts = LockFacts(lock, "0.5.19")
    assert not missing
    assert locked.members(PLATFORM) == live.members(PLATFORM)
    assert {"sglang/srt/utils/common.py", "sglang/srt/platforms/device_mixin.py"} <= set(
        lock.files("0.5.19")
    )


@pytest.mark.parametrize("version", RELEASES)
def test_every_definition_at_the_top_of_a_module_resolves_to_itself(version: str) -> None:
    facts = _facts(version)
    checked = 0
    for module in list(facts.release.modules())[::60]:
        table = facts.table(module)
        if table is None or module.startswith("sglang.test"):
            continue
        for name, bound in table.scope.bindings.items():
            if len(bound) == 1 and bound[0].kind in ("function", "class"):
                found = facts.resolve(f"{module}.{name}")
                assert isinstance(found, Symbol)
                assert (found.location.file, found.location.line) == (table.file, bound[0].line)
                checked += 1
    assert checked > 200

"""What real code contains, point by point, and what the resolver makes of it."""

from __future__ import annotations

from functools import cache

import pytest

from kunlun_adapt.upstream import Missing, Resolver, Symbol, open_release

pytestmark = pytest.mark.upstream

SRT = "sglang.srt"


@cache
def facts(version: str) -> Resolver:
    return Resolver(open_release(version))


def symbol(path: str, version: str = "0.5.19") -> Symbol:
    found = facts(version).resolve(path)
    assert isinstance(found, Symbol), found
    return found


def missing(path: str, version: str = "0.5.19") -> Missing:
    found = facts(version).resolve(path)
    assert isinstance(found, Missing), found
    return found


def text(found: Symbol) -> str | None:
    return found.signature.text() if found.signature else None


def test_fields_of_server_args_whatever_the_class_is_made_of() -> None:
    for version in ("0.5.17", "0.5.19", "0.5.23"):
        for name in ("page_size", "attention_backend", "tp_size"):
            assert symbol(f"{SRT}.server_args.ServerArgs.{name}", version).kind == "attribute"
        missing(f"{SRT}.server_args.ServerArgs.page_sise", version)
    new = symbol(f"{SRT}.server_args.ServerArgs.page_size", "0.5.23")
    assert new.location.file.startswith("sglang/srt/arg_groups/fields/")
    members = facts("0.5.23").members(f"{SRT}.server_args.ServerArgs")
    assert {"check_server_args", "page_size", "model_path"} <= members.keys()


def test_a_struct_says_how_it_is_called() -> None:
    capabilities = symbol(f"{SRT}.platforms.interface.PlatformCapabilities", "0.5.23")
    assert capabilities.signature is not None
    assert {p.kind for p in capabilities.signature.parameters} == {"keyword_only"}
    assert "supports_pynccl" in capabilities.signature.names


def test_decorators_that_make_something_else_of_a_function() -> None:
    assert symbol(f"{SRT}.utils.common.is_hip").kind == "cached_function"
    registered = symbol(f"{SRT}.layers.radix_attention.unified_attention_with_output")
    assert registered.kind == "custom_op"
    kernel = symbol("sglang.kernels.ops.memory.common.write_req_to_token_pool_triton")
    assert kernel.kind == "triton_kernel"
    assert kernel.signature is not None
    generate = symbol(f"{SRT}.managers.tokenizer_manager.TokenizerManager.generate_request")
    assert generate.is_async
    assert symbol(f"{SRT}.managers.schedule_batch.Req.seqlen").kind == "property"


def test_a_class_that_a_call_makes() -> None:
    assert symbol(f"{SRT}.distributed.parallel_state.TensorMetadata").kind == "class"


def test_an_attribute_that_is_given_to_a_class_later() -> None:
    found = symbol(f"{SRT}.environ.EnvField._allow_set_name")
    # The class body says True, and a line after it False.
    assert (found.kind, found.value) == ("attribute", "False")
    assert found.location.line > symbol(f"{SRT}.environ.EnvField").location.line


def test_names_that_a_module_getattr_serves() -> None:
    assert symbol(f"{SRT}.platforms.current_platform").kind == "lazy"
    assert symbol("sglang.Engine").resolved == f"{SRT}.entrypoints.engine.Engine"


def test_a_wildcard_drops_what_starts_with_an_underscore() -> None:
    shim = f"{SRT}.layers.attention.nsa_backend"
    table = facts("0.5.19").table(f"{SRT}.layers.attention.dsa_backend")
    assert table is not None
    names = [n for n, bound in table.scope.bindings.items() if bound[0].kind == "function"]
    hidden = [n for n in names if n.startswith("_")]
    assert hidden
    assert missing(f"{shim}.{hidden[0]}").reason == "symbol_missing"


def test_an_import_for_type_checkers_alone_is_none() -> None:
    found = missing(f"{SRT}.managers.schedule_batch.HiSparseCoordinator")
    assert found.reason == "type_checking_only"
    assert found.at is not None and found.at.file.endswith("schedule_batch.py")


def test_a_name_with_a_definition_for_each_device() -> None:
    module = f"{SRT}.layers.moe.topk"
    for version in ("0.5.17", "0.5.19", "0.5.23"):
        found = symbol(f"{module}.biased_grouped_topk", version)
        assert found.resolved == f"{module}.biased_grouped_topk_gpu"
        assert [v.resolved for v in found.variants] == [f"{module}.biased_grouped_topk_cpu"]


def test_a_kernel_that_left_the_server_is_reached_where_it_is_imported() -> None:
    found = symbol(f"{SRT}.mem_cache.allocation.write_req_to_token_pool_triton")
    assert found.resolved.startswith("sglang.kernels.ops.memory.common.")


def test_a_class_that_is_chosen_for_the_device() -> None:
    path = f"{SRT}.models.deepseek_v4.DeepseekV4DecoderLayer"
    found = symbol(path, "0.5.23")
    assert found.resolved.endswith("DeepseekV4CudaDecoderLayer")
    assert symbol(f"{path}.hc_pre", "0.5.23").inherited_from is not None

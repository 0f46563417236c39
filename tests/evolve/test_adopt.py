# ruff: noqa: E501 -- the rows of the table stay whole
"""A plugin in every style, adopted for a real release: each binding, one by one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from kunlun_adapt.check import check_release
from kunlun_adapt.diagnostics import ReleaseReport
from kunlun_adapt.documents import load_catalog
from kunlun_adapt.evolve.adopt import Adoption, adopt_plugin, read_sources, wanted_release
from kunlun_adapt.plan import make_plan
from kunlun_adapt.source import compile_plan, template_folder
from kunlun_adapt.upstream import Resolver, open_release
from tests.evolve.plugin_bench import ROOT, left, shipped, the_map

pytestmark = pytest.mark.upstream

ACME = Path(__file__).parent / "plugins" / "acme"
COMMON = "sglang.srt.utils.common"
TOPK = "sglang.srt.layers.moe.topk"
REGISTRY = "sglang.srt.layers.attention.attention_registry"

HOOKS: list[tuple[str, str, Any]] = [
    # @plugin_hook
    ("sglang.srt.managers.scheduler.Scheduler.run_batch", "before", "hooks:before_batch"),
    ("sglang.srt.model_executor.model_runner.ModelRunner.load_model", "after", "hooks:after_load"),
    ("sglang.srt.managers.scheduler.Scheduler", "replace", "hooks:AcmeScheduler"),
    # decorators of the plugin's own: with an f-string, with a symbol, and two that only take notes
    (f"{COMMON}.support_triton", "replace", "hooks:support_triton"),
    (f"{TOPK}.select_experts", "around", "hooks:select_experts"),
    (f"{COMMON}.get_available_gpu_memory", "replace", "hooks:available_memory"),
    ("sglang.srt.layers.rotary_embedding.factory.get_rope_wrapper", "replace", "hooks:rope_wrapper"),
    # HookRegistry.register: a constant of another module, a loop over a dict, a condition
    (f"{COMMON}.is_flashinfer_available", "replace", "hooks:is_flashinfer_available"),
    (f"{TOPK}.grouped_topk_gpu", "replace", "hooks:grouped_topk"),
    (f"{TOPK}.biased_grouped_topk_gpu", "replace", "hooks:grouped_topk"),
    ("sglang.srt.layers.linear.vanished_in_no_release", "after", "hooks:vanished"),
    (
        "sglang.srt.distributed.parallel_state.GroupCoordinator.all_gather",
        "around",
        "hooks:gather",
    ),
    # assignments, setattr, import_module, an object that applies itself
    ("sglang.srt.managers.tokenizer_manager.TokenizerManager", "replace", "hooks:AcmeTokenizerManager"),
    ("sglang.srt.mem_cache.allocation.get_last_loc", "replace", None),
    ("sglang.srt.platforms.interface.SRTPlatform.empty_cache", "replace", "hooks:empty_cache"),
    (f"{COMMON}.acme_helper", "add", "hooks:new_helper"),
    (f"{COMMON}.set_gpu_proc_affinity", "replace", "hooks:set_affinity"),
    (f"{COMMON}.BAR_FORMAT", "set", None),
    ("torch.cuda.get_device_name", "replace", "hooks:device_name"),
    # lists
    ("sglang.srt.server_args.ATTENTION_BACKEND_CHOICES", "extend", None),
    ("sglang.srt.server_args.GRAMMAR_BACKEND_CHOICES", "extend", None),
    # registries, by upstream's decorator and by the plugin's own around it
    (f"{REGISTRY}.register_attention_backend", "register", "ops:create_backend"),
    (f"{REGISTRY}.register_attention_backend", "register", "ops:create_sparse"),
    (
        "sglang.srt.layers.moe.moe_runner.base.register_fused_func",
        "register",
        "ops:fused_experts",
    ),
    # an entry of a dict
    (f"{REGISTRY}.ATTENTION_BACKENDS", "extend", "ops:create_backend"),
    # never called
    (f"{COMMON}.is_hip", "replace", "hooks:vanished"),
]  # fmt: skip


@pytest.fixture(scope="module")
def resolver() -> Resolver:
    return Resolver(open_release("0.5.19"))


@pytest.fixture(scope="module")
def adoption(resolver: Resolver, tmp_path_factory: pytest.TempPathFactory) -> Adoption:
    out = tmp_path_factory.mktemp("adopted")
    found = adopt_plugin(read_sources(ACME), resolver, shipped(), out)
    for name, text in found.files.items():
        (out / name).parent.mkdir(exist_ok=True)
        (out / name).write_text(text, encoding="utf-8")
    return found


@pytest.fixture(scope="module")
def report(
    adoption: Adoption, resolver: Resolver, tmp_path_factory: pytest.TempPathFactory
) -> ReleaseReport:
    root = tmp_path_factory.getbasetemp() / "adopted0"
    return check_release(load_catalog(root), resolver, ignored=lambda code: code == "KA107")


def test_the_release_is_the_one_that_the_project_pins() -> None:
    assert wanted_release(read_sources(ACME), ("0.5.17", "0.5.23")) == "0.5.19"


def test_every_hook_is_found(adoption: Adoption) -> None:
    made = [(h["at"][0]["target"], h["type"], h.get("impl")) for h in the_map(adoption)["hooks"]]
    wanted = [(t, kind, impl and f"acme_sglang.{impl}") for t, kind, impl in HOOKS]
    assert sorted(made, key=str) == sorted(wanted, key=str)


def test_the_map_says_what_the_platform_class_says(adoption: Adoption) -> None:
    said = the_map(adoption)
    assert said["name"] == "acme" and said["sglang"] == ">=0.5.19,<0.5.20"
    assert said["device"] == {
        "name": "acme",
        "probe": {"module": "acme_runtime"},
        "base": "acme_sglang.platform:AcmePlatform",
        "profiles": {
            "card": {
                "reports_as": "acme",
                "dispatch_key": "acme",
                "distributed_backend": "accl",
            }
        },
    }
    runner = "sglang.srt.model_executor.runner.decode_cuda_graph_runner:DecodeCudaGraphRunner"
    assert said["factories"] == {
        "kv_pool": {"mha": "acme_sglang.pools:AcmeKVPool"},
        "graph_runner": runner,
    }
    names = ["get_default_attention_backend", "get_device_name", "init_backend"]
    assert said["methods"] == {
        name: f"acme_sglang.platform:AcmePlatform.{name}"
        for name in (*names, "get_device_total_memory")
    }
    assert said["capabilities"] == {"graph_capture": True, "fp8": False}


def test_stand_ins_models_and_the_environment(adoption: Adoption) -> None:
    said = the_map(adoption)
    assert [(s["module"], s.get("provide"), s.get("shadows")) for s in said["shims"]] == [
        ("sgl_kernel", "acme_sglang.stubs.kernel_stub", True),
        ("deep_gemm", "acme_sglang.stubs.deep_gemm_stub", None),
        ("flashinfer", None, True),
    ]
    assert [(m["architecture"], m.get("replaces")) for m in said["models"]] == [
        ("LlamaForCausalLM", True),
        ("AcmeForCausalLM", None),
    ]
    assert {e["name"]: e["default"] for e in said["environment"]} == {
        "ACME_STREAMS": "2",
        "SGLANG_SKIP_SGL_KERNEL_VERSION_CHECK": "1",
    }


def test_operators(adoption: Adoption) -> None:
    recipes = list(yaml.safe_load_all(adoption.files["operator_recipes/adopted.yaml"]))
    said = {r["binds"][0]["target"].rpartition(".")[2]: r["kernels"][0]["impl"] for r in recipes}
    assert said == {
        "SiluAndMul": "acme_sglang.ops:gated",
        "GeluAndMul": "acme_sglang.ops:gated",
        "RMSNorm": "acme_sglang.ops:rms_norm",
    }
    norm = recipes[-1]
    assert norm["binds"][0]["args"] == {"layer": "self", "x": "x", "residual": "residual"}
    assert norm["params"]["residual"] == "object | None"


def test_what_was_left(adoption: Adoption) -> None:
    install, ops = "src/acme_sglang/install.py", "src/acme_sglang/ops/__init__.py"
    text = (ACME / install).read_text(encoding="utf-8").splitlines()
    registered = (ACME / ops).read_text(encoding="utf-8").splitlines()

    def line(needle: str, lines: list[str] = text) -> int:
        found = [n for n, one in enumerate(lines, 1) if needle in one]
        assert len(found) == 1, needle
        return found[0]

    assert sorted(left(adoption)) == sorted(
        [
            ("condition", install, line("SGL_KERNEL_VERSION")),
            ("condition", install, line("if torch.cuda.is_available()")),
            ("implementation", install, line('sys.modules["flashinfer"]')),
            ("implementation", install, line("lambda *args")),
            ("name", install, line("HookRegistry.register(name,")),
            ("name", install, line("module.anything")),
            ("name", install, line('f"sglang.srt.{name}"')),
            ("new", install, line("acme_helper =")),
            # Kernels in a module that imports what they serve.
            ("implementation", ops, line("cls.register_oot_forward", registered)),
            ("implementation", ops, line("cls.register_oot_forward", registered)),
            ("implementation", ops, line("cls.register_oot_forward", registered)),
            ("unreached", install, line("utils.common.is_hip")),
            ("unsupported", install, line("DEFAULT_PORT_FOR_ACME")),
            ("unsupported", ops, line('@register_fused_func("none"', registered)),
        ]
    )


def test_every_binding_stands_where_the_plugin_has_it(adoption: Adoption) -> None:
    for taken in adoption.taken:
        lines = (ACME / taken.file).read_text(encoding="utf-8").splitlines()
        assert 1 <= taken.line <= len(lines), taken


def test_validate_works_on_it_at_once(report: ReleaseReport) -> None:
    codes = {f.code for f in report.findings}
    # The documents are whole, and every implementation is found in the plugin's own files.
    assert not {c for c in codes if c.startswith("KA0")} and "KA301" not in codes
    found = {(f.code, f.binding) for f in report.findings}
    assert ("KA101", "vanished-in-no-release") in found
    assert ("KA302", "get-rope-wrapper") in found
    assert ("KA105", "rms_norm/RMSNorm") in found
    assert ("KA302", "support-triton") not in found and ("KA302", "select-experts") not in found
    assert report.bound > 35


def test_it_renders(adoption: Adoption, resolver: Resolver, tmp_path: Path) -> None:
    """Without the target that no release has, all of it becomes Python."""
    for name, text in adoption.files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        kept = text.replace("sglang.srt.layers.linear.vanished_in_no_release", f"{COMMON}.is_npu")
        (tmp_path / name).write_text(kept, encoding="utf-8")
    plan = make_plan(load_catalog(tmp_path), resolver, "card")
    modules = dict(compile_plan(plan, template_folder(ROOT)).modules)
    platform, hooks = modules["platform"], modules["hooks"]
    assert "from acme_sglang.platform import AcmePlatform as Handwritten\n" in platform
    assert "class AcmePlatform(Handwritten):\n" in platform
    assert "return super().get_device_name(device_id=device_id)\n" in platform
    assert "takes_arguments=True" in hooks
    for text in modules.values():
        compile(text, "generated", "exec")

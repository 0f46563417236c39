"""The workspace of the repository against real wheels, as it is and with one thing wrong."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from kunlun_adapt.check import check_release
from kunlun_adapt.check.usage import CODES_OF_USAGE
from kunlun_adapt.diagnostics import Finding, Severity
from kunlun_adapt.documents import load_catalog
from kunlun_adapt.upstream import Resolver, open_release
from tests.check.said import codes, only

pytestmark = pytest.mark.upstream

ROOT = Path(__file__).resolve().parents[2]
RELEASES = ("0.5.17", "0.5.19", "0.5.23")
BETWEEN = ("0.5.18", "0.5.20", "0.5.21", "0.5.22")
HOOKS = "\nhooks:\n"


@cache
def facts(version: str) -> Resolver:
    return Resolver(open_release(version))


Check = Callable[..., tuple[Finding, ...]]


@pytest.fixture
def check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Check:
    """Check the workspace against a release, after replacing texts in its map.

    How upstream uses the targets is left out, which takes the index and has tests of its own; and
    so is what is only information.
    """
    monkeypatch.setattr("kunlun_adapt.check.usage.found", lambda context: ())
    monkeypatch.setattr("kunlun_adapt.check.usage.neighbours", lambda context: {})

    def run(version: str, *edits: tuple[str, str], beyond: bool = False) -> tuple[Finding, ...]:
        shutil.copy(ROOT / "platform_map.yaml", tmp_path)
        for recipes in ("operator_recipes", "recipes"):
            shutil.copytree(ROOT / recipes, tmp_path / recipes, dirs_exist_ok=True)
        path = tmp_path / "platform_map.yaml"
        text = path.read_text(encoding="utf-8")
        for old, new in edits:
            assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times"
            text = text.replace(old, new)
        path.write_text(text, encoding="utf-8")
        report = check_release(
            load_catalog(tmp_path),
            facts(version),
            beyond_claims=beyond,
            ignored=(*CODES_OF_USAGE, "KA108").__contains__,
        )
        return tuple(f for f in report.findings if f.severity is not Severity.INFO)

    return run


def hook(type: str, target: str, how: str = "") -> tuple[str, str]:
    """An edit that adds a hook on a target."""
    text = f"""
hooks:
  - id: tried
    why: this test tries it
    type: {type}
    impl: "kunlun_adapt.hooks.attention:support_triton"
    at:
      - {{target: {target}{how}}}
"""
    return HOOKS, text


@pytest.mark.parametrize(
    "version", [*RELEASES, *(pytest.param(v, marks=pytest.mark.full) for v in BETWEEN)]
)
def test_the_workspace_has_no_findings(check: Check, version: str) -> None:
    assert [(str(f.position), f.message) for f in check(version)] == []


def test_a_release_from_before_the_interface(check: Check) -> None:
    findings = check("0.5.9")
    assert sorted(codes(findings)) == ["KA009", "KA205"]
    assert {f.position.line for f in findings} == {
        (ROOT / "platform_map.yaml").read_text(encoding="utf-8").split("\nsglang:")[0].count("\n")
        + 2
    }


def test_a_target_that_moved(check: Check) -> None:
    old = "sglang.srt.mem_cache.common.get_last_loc"
    found = only(check("0.5.23", ("sglang.srt.mem_cache.allocation.get_last_loc", old)), "KA102")
    assert (found.suggestion or "").startswith(
        '- {sglang: ">=0.5.23", target: sglang.srt.mem_cache.allocation.get_last_loc, '
    )


def test_a_reexport_that_dangles(check: Check) -> None:
    target = "sglang.srt.layers.attention.nsa_backend.NativeSparseAttnBackend"
    found = only(check("0.5.17", hook("replace", target)), "KA103")
    assert found.upstream is not None
    assert found.upstream.file == "sglang/srt/layers/attention/nsa_backend.py"


def test_a_parameter_that_upstream_inserted(check: Check) -> None:
    target = "sglang.srt.speculative.eagle_worker_v2.EAGLEWorkerV2.verify"
    edit = hook("around", target, ", args: {backend: batch}")
    before = [f.message for f in check("0.5.19", edit)]
    # Beside it a hook of the workspace's own is told, which changes the same call.
    after = only([f for f in check("0.5.23", edit) if f.code != "KA403"], "KA105")
    assert "'pp_proxy_tensors'" not in "".join(before)
    assert "'pp_proxy_tensors'" in after.message
    assert "pp_proxy_tensors: null" in (after.suggestion or "")


def test_a_triton_kernel_is_no_function(check: Check) -> None:
    target = "sglang.kernels.ops.memory.common.write_req_to_token_pool_triton"
    found = [f for f in check("0.5.19", hook("replace", target)) if f.code == "KA104"]
    assert "kernel[grid]" in only(found, "KA104").message


def test_a_method_of_the_platform_that_is_not_given(check: Check) -> None:
    lines = (
        "  get_device_total_memory:\n"
        '    card: "kunlun_adapt.hooks.host:device_total_memory"\n'
        '    simulator: "kunlun_adapt.hooks.host:simulated_total_memory"\n'
        '    simulator_cuda: "kunlun_adapt.hooks.host:simulated_total_memory"\n'
    )
    served = "  methods.get_device_total_memory: {simulator: true}\n"
    findings = check("0.5.19", (lines, ""), (served, ""))
    # A landing point names what is taken out here, which is KA005.
    found = only([f for f in findings if f.code != "KA005"], "KA204")
    assert found.message.startswith("get_device_total_memory raises NotImplementedError")
    assert str(found.upstream).startswith("sglang/srt/platforms/device_mixin.py:")


def test_a_pool_method_that_went_away(check: Check) -> None:
    method = '    - {sglang: "<0.5.22", method: get_mha_kv_pool_cls}\n'
    later = '    - {sglang: ">=0.5.22", method: get_kv_pool_cls, argument: {kind: mha}}\n'
    edit = (method + later, "    - {method: get_mha_kv_pool_cls}\n")
    assert codes(check("0.5.19", edit)) == []
    assert only(check("0.5.23", edit), "KA201").suggestion == (
        'interface.kv_pool.mha: add {sglang: ">=0.5.23", method: get_kv_pool_cls, '
        "argument: {kind: mha}}"
    )


def test_a_capability_that_nobody_spoke_of(check: Check) -> None:
    spelled = (
        '  capabilities.pynccl:\n    - {sglang: ">=0.5.23", field: capabilities.supports_pynccl}\n'
    )
    edits = [
        ("  pynccl: false\n", ""),
        (spelled, ""),
        ("  capabilities.pynccl: {simulator: true}\n", ""),
    ]
    found = only(check("0.5.23", *edits), "KA203")
    assert "capabilities.supports_pynccl" in found.message


def test_a_readback_that_is_not_there(check: Check) -> None:
    old = "attention_registry.ATTENTION_BACKENDS}"
    findings = check("0.5.19", (old, "attention_registry.ATTENTION_BACKEND}"))
    found = only(findings, "KA101")
    assert found.binding == "attention-backend"
    assert found.target is not None and found.target.endswith("ATTENTION_BACKEND")
    assert found.suggestion is not None and "ATTENTION_BACKENDS" in found.suggestion


@pytest.mark.parametrize("version", RELEASES)
def test_a_hole_in_one_profile(check: Check, version: str) -> None:
    line = '\n    simulator: "kunlun_adapt.hooks.host:simulated_total_memory"\n'
    found = only(check(version, (line, "\n")), "KA204")
    assert "for the profile simulator" in found.message
    found = only(check(version, ("graph_capture: {card: true, ", "graph_capture: {")), "KA203")
    assert "for the profile card" in found.message


@pytest.mark.parametrize("version", RELEASES)
@pytest.mark.parametrize(
    ("old", "new", "meant"),
    [
        ('\n    mla: "kunlun', '\n    mlaa: "kunlun', "kv_pool.mla"),
        ("\n  triton: false", "\n  tritn: false", "capabilities.triton"),
        ("\n  get_device_name:\n", "\n  get_device_nam:\n", "methods.get_device_name"),
    ],
)
def test_a_misspelt_key_is_one_finding(
    check: Check, version: str, old: str, new: str, meant: str
) -> None:
    (found,) = check(version, (old, new))
    assert found.suggestion == f"did you mean {meant}?"


@pytest.mark.parametrize("version", RELEASES)
@pytest.mark.parametrize(
    ("slip", "key"),
    [("device.nam", "device.name"), ("kv_pol.mla", "kv_pool.mla"), ("graph_runer", "graph_runner")],
)
def test_a_slip_in_the_interface_is_one_finding(
    check: Check, version: str, slip: str, key: str
) -> None:
    found = only(check(version, (f"\n  {key}:\n    - {{", f"\n  {slip}:\n    - {{")), "KA202")
    assert found.suggestion == f"interface.{slip}: did you mean {key}?"
    text = (ROOT / "platform_map.yaml").read_text(encoding="utf-8")
    assert found.position.line == text[: text.index(f"\n  {key}:\n    - {{")].count("\n") + 2


def test_server_arguments_are_known_where_a_class_lists_them(check: Check) -> None:
    edit = ("arg: page_size", "arg: page_siz")
    for version in RELEASES:
        found = [f for f in check(version, edit) if f.code == "KA209"]
        assert only(found, "KA209").suggestion == "did you mean page_size?"


def test_the_release_that_all_claim_stays_without_findings_beyond_the_claims(check: Check) -> None:
    assert [(str(f.position), f.message) for f in check("0.5.19", beyond=True)] == []


PLATFORM = ("factory/", "method/")


@pytest.mark.parametrize(
    "version",
    [
        *("0.5.11", "0.5.13", "0.5.15"),
        *(pytest.param(v, marks=pytest.mark.full) for v in ("0.5.12", "0.5.14", "0.5.16")),
    ],
)
def test_the_platform_holds_before_the_claims_too(check: Check, version: str) -> None:
    """Identity, factories, capabilities, server arguments and processes, and no kernel."""
    findings = [f for f in check(version, beyond=True) if f.severity is Severity.ERROR]
    platform = [f for f in findings if f.binding is None or f.binding.startswith(PLATFORM)]
    assert [(f.code, str(f.position), f.message) for f in platform] == []
    # That the others are looked at here is seen from what has moved since.
    assert findings


@pytest.mark.parametrize("version", ["0.5.11", "0.5.13"])
def test_a_module_that_is_gone_has_a_place_and_a_way_out(check: Check, version: str) -> None:
    text = (ROOT / "platform_map.yaml").read_text(encoding="utf-8")
    older = next(line for line in text.splitlines() if "cuda_graph_runner:CudaGraph" in line)
    before = text[text.index("    card:\n", text.index("graph_runner:\n")) :].split(older)[0]
    missing = [
        f for f in check(version, (before + older + "\n", before), beyond=True) if f.code == "KA101"
    ]
    assert missing
    for found in missing:
        assert found.upstream is not None and found.upstream.file.endswith(".py"), found
        assert found.suggestion, found

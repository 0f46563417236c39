# ruff: noqa: E501 -- the YAML lines stay whole
"""What is known of the platform interface of real releases, found by the rules."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from kunlun_adapt.check import Context, check_release
from kunlun_adapt.check.processes import loads_plugins
from kunlun_adapt.check.server_args import server_arg, takes
from kunlun_adapt.diagnostics import Finding, Severity
from kunlun_adapt.documents import load_catalog
from kunlun_adapt.plan import make_plan
from tests.check.real import facts, upstream_line
from tests.check.said import only

pytestmark = pytest.mark.upstream

ROOT = Path(__file__).resolve().parents[2]
HOOKS = "\nhooks:\n"
DETOKENIZER = "sglang.srt.managers.detokenizer_manager.DetokenizerManager"

Check = Callable[..., tuple[Finding, ...]]


@pytest.fixture
def check(tmp_path: Path) -> Check:
    """Check the shipped map against a release, after replacing texts in it; `whole` workspace too."""

    def run(
        version: str, *edits: tuple[str, str], beyond: bool = True, whole: bool = False
    ) -> tuple[Finding, ...]:
        shutil.copy(ROOT / "platform_map.yaml", tmp_path)
        for folder in ("operator_recipes", "recipes") if whole else ():
            shutil.copytree(ROOT / folder, tmp_path / folder, dirs_exist_ok=True)
        path = tmp_path / "platform_map.yaml"
        text = path.read_text(encoding="utf-8")
        for old, new in edits:
            assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times"
            text = text.replace(old, new)
        path.write_text(text, encoding="utf-8")
        return check_release(load_catalog(tmp_path), facts(version), beyond_claims=beyond).findings

    return run


def about(findings: tuple[Finding, ...], *codes: str, binding: str | None = None) -> list[Finding]:
    """Leave out what other rules say of the rest of the map."""
    return [f for f in findings if f.code in codes and binding in (None, f.binding)]


def spelling(*lines: str) -> str:
    return "".join(f"    - {line}\n" for line in lines)


GRAPHS = (
    spelling('{sglang: "<0.5.22", method: support_cuda_graph}',
             '{sglang: ">=0.5.22", field: capabilities.graph_capture}'),
    spelling("{method: support_cuda_graph}"),
)  # fmt: skip
POOLS = (
    spelling('{sglang: "<0.5.13", method: get_nsa_kv_pool_cls}',
             '{sglang: ">=0.5.13,<0.5.22", method: get_dsa_kv_pool_cls}',
             '{sglang: ">=0.5.22", method: get_kv_pool_cls, argument: {kind: dsa}}'),
    spelling("{method: get_nsa_kv_pool_cls}"),
)  # fmt: skip


def test_the_question_for_graphs_became_a_capability(check: Check) -> None:
    key = "factory/capabilities.graph_capture"
    assert about(check("0.5.21", GRAPHS), "KA201", "KA202", "KA208", binding=key) == []
    found = only(about(check("0.5.22", GRAPHS), "KA201", "KA202", "KA208", binding=key), "KA201")
    assert found.severity is Severity.ERROR
    assert "has no support_cuda_graph" in found.message
    assert upstream_line("0.5.22", found).startswith("class SRTPlatform(")
    assert "field: capabilities.graph_capture}" in (found.suggestion or "")


@pytest.mark.parametrize(
    ("version", "now"),
    [
        ("0.5.11", None),
        ("0.5.13", "method: get_dsa_kv_pool_cls}"),
        ("0.5.22", "method: get_kv_pool_cls, argument: {kind: dsa}}"),
    ],
)
def test_the_pool_of_sparse_attention_was_renamed_twice(
    check: Check, version: str, now: str | None
) -> None:
    found = about(check(version, POOLS), "KA201", binding="factory/kv_pool.dsa")
    if now is None:
        assert found == []
    else:
        told = only(found, "KA201")
        assert "has no get_nsa_kv_pool_cls" in told.message and now in (told.suggestion or "")
        assert upstream_line(version, told).startswith("class SRTPlatform(")


RUNS = f"{DETOKENIZER.rpartition('.')[0]}.run_detokenizer_process"
STATED = f'    - {{sglang: "<0.5.22", call: {RUNS}, loads_plugins: false}}\n'


@pytest.mark.parametrize(("version", "loads"), [("0.5.21", False), ("0.5.22", True)])
def test_the_detokenizer_loads_plugins_since_0_5_22(
    check: Check, version: str, loads: bool
) -> None:
    assert about(check(version), "KA407") == []
    always = (STATED, f'    - {{sglang: "<0.5.22", call: {RUNS}}}\n')
    never = (f'">=0.5.22", call: {RUNS}', f'">=0.5.22", call: {RUNS}, loads_plugins: false')
    wrong = [never] if loads else [always]
    found = only(about(check(version, *wrong), "KA407"), "KA407")
    assert found.target == RUNS and found.severity is Severity.ERROR
    assert str(found.upstream).startswith("sglang/srt/managers/detokenizer_manager.py:")
    right = [always] if loads else [never]
    assert about(check(version, *right), "KA407") == []


@pytest.mark.parametrize(
    ("version", "loading"),
    [
        ("0.5.11", ["scheduler"]),
        ("0.5.19", ["scheduler"]),
        ("0.5.21", ["scheduler"]),
        ("0.5.22", ["scheduler", "detokenizer", "dp_controller"]),
        ("0.5.23", ["scheduler", "detokenizer", "dp_controller"]),
    ],
)
def test_which_processes_load_plugins(version: str, loading: list[str]) -> None:
    catalog = load_catalog(ROOT)
    assert catalog.platform_map is not None
    context = Context(catalog, catalog.platform_map, facts(version), (), None, True)
    processes = ("scheduler", "detokenizer", "dp_controller", "tokenizer")
    assert [p for p in processes if loads_plugins(context, p)] == loading
    assert loads_plugins(context, "main") is None


def test_what_get_device_returned_once(check: Check) -> None:
    """It took `local_rank` and returned a torch.device before 0.5.13."""
    text = (ROOT / "platform_map.yaml").read_text(encoding="utf-8")
    given = text[text.index("\n  get_device:\n") : text.index("\n  get_device_name:\n")]
    newer = "\n".join(
        f'    {profile}: "kunlun_adapt.hooks.host:{name}"'
        for profile, name in (
            ("card", "device"), ("simulator", "simulated_device"), ("simulator_cuda", "device")
        )
    )  # fmt: skip
    assert about(check("0.5.11"), "KA207") == []
    edit = (given, f"\n  get_device:\n{newer}")
    found = about(check("0.5.11", edit), "KA207", binding="method/get_device")
    assert len(found) == 3  # one implementation for each profile
    for item in found:
        assert "it does not take 'local_rank'" in item.message
        assert "it returns str, and upstream torch.device" in item.message
    for version in ("0.5.13", "0.5.19", "0.5.23"):
        assert about(check(version, edit), "KA207") == about(check(version), "KA207") == []


def test_where_custom_ops_are_registered(check: Check) -> None:
    answer = "\naccepts:\n  - code: KA211"
    text = (ROOT / "platform_map.yaml").read_text(encoding="utf-8")
    whole = text[text.index(answer) :]
    for version in ("0.5.19", "0.5.22"):
        assert about(check(version, (whole, "\n")), "KA211") == []
    told = about(check("0.5.23", (whole, "\n")), "KA211")
    assert [f.message.partition("profile ")[2].split()[0] for f in told] == [
        "card",
        "simulator_cuda",
    ]
    for found in told:
        assert found.severity is Severity.WARNING
        assert str(found.upstream).startswith("sglang/srt/utils/common.py:")
    assert about(check("0.5.23"), "KA211")[0].severity is Severity.INFO


@pytest.mark.parametrize("version", ["0.5.11", "0.5.17", "0.5.19", "0.5.21", "0.5.22", "0.5.23"])
def test_server_arguments_of_every_making(check: Check, version: str) -> None:
    def given(entry: str) -> list[Finding]:
        text = f"\nserver_args:\n  - {{{entry}, why: this test tries it}}\n"
        return about(check(version, ("\nserver_args:\n", text)), "KA209")

    assert about(check(version), "KA209") == []
    slip = only(given("arg: page_siz, default: 128"), "KA209")
    assert slip.suggestion == "did you mean page_size?"
    kind = only(given("arg: page_size, default: true"), "KA209")
    assert "takes Optional[int], not true" in kind.message
    assert kind.upstream is not None and kind.target is not None
    choice = given("arg: attention_backend, default: kunlum")
    if version == "0.5.11":  # the choices stood in the parser, not at the field
        assert choice == []
    else:
        assert "takes one of triton" in only(choice, "KA209").message


def test_what_server_arguments_take() -> None:
    catalog = load_catalog(ROOT)
    assert catalog.platform_map is not None
    plan = make_plan(catalog, facts("0.5.23"), "card")
    context = Context(catalog, catalog.platform_map, facts("0.5.23"), (plan,))
    wanted = {
        "trust_remote_code": (True, "yes"),
        "watchdog_timeout": (3, "long"),
        "served_model_name": ("llama", 3),
        "device": (None, 0),
        "attention_backend": ("kunlun", "kunlum"),
    }
    for name, (good, bad) in wanted.items():
        field = server_arg(context, name)
        assert field is not None, name
        accepted = takes(context, field)
        assert accepted is not None, name
        assert not accepted.refuses(good) and accepted.refuses(bad), name
    assert server_arg(context, "gpu_id") is None  # derived, and nobody's to give
    assert server_arg(context, "resolve_once") is None


@pytest.mark.parametrize("version", ["0.5.17", "0.5.19", "0.5.22", "0.5.23"])
def test_a_capability_that_is_on_is_asked_for(check: Check, version: str) -> None:
    assert about(check(version), "KA208") == []


def test_a_capability_that_nobody_reads(check: Check) -> None:
    edit = ("  piecewise_graph: false", "  piecewise_graph: true")
    assert about(check("0.5.19", edit), "KA208") == []
    found = only(about(check("0.5.23", edit), "KA208"), "KA208")
    assert found.binding == "factory/capabilities.piecewise_graph"


def test_names_that_upstream_has_taken(check: Check) -> None:
    name = ("    value: [kunlun]\n    impl: \"kunlun_adapt.kernels.attention.backend:create_backend\"",
            "    value: [triton]\n    impl: \"kunlun_adapt.kernels.attention.backend:create_backend\"")  # fmt: skip
    found = only(about(check("0.5.23", name), "KA210"), "KA210")
    assert found.binding == "attention-backend"
    assert str(found.upstream).startswith("sglang/srt/layers/attention/attention_registry.py:")
    assert about(check("0.5.23"), "KA210") == []


@pytest.mark.parametrize("beyond", [False, True])
def test_a_release_from_before_the_interface(check: Check, beyond: bool) -> None:
    findings = check("0.5.9", beyond=beyond, whole=True)
    assert findings[0].code == "KA205"
    assert "has no sglang.srt.platforms and no sglang.srt.plugins" in findings[0].message
    errors = [f.code for f in findings if f.severity is Severity.ERROR]
    assert errors == (["KA205"] if beyond else ["KA205", "KA009"])


@pytest.mark.parametrize("micro", range(17, 24))
def test_the_stack_has_a_row_for_each_release_that_was_served(check: Check, micro: int) -> None:
    assert about(check(f"0.5.{micro}"), "KA501") == []

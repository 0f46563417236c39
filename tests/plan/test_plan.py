"""Which bindings hold for a release and profile, and why the others do not."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kunlun_adapt.diagnostics import AdaptError
from kunlun_adapt.documents import Catalog, load_catalog
from kunlun_adapt.locate import LOCK_FILE
from kunlun_adapt.plan import Plan, make_plan
from kunlun_adapt.plan.nearest import nearest_known, nearest_range
from kunlun_adapt.plan.plan import PLANNED
from kunlun_adapt.upstream import LockFacts, Missing, Symbol, read_lock

ROOT = Path(__file__).resolve().parents[2]


def plan(release: str, profile: str = "simulator", root: Path = ROOT, **how: bool) -> Plan:
    lock = read_lock(ROOT / LOCK_FILE)
    return make_plan(load_catalog(root), LockFacts(lock, release), profile, **how)


def workspace(tmp_path: Path, old: str, new: str) -> Path:
    shutil.copytree(ROOT / "operator_recipes", tmp_path / "operator_recipes")
    text = (ROOT / "platform_map.yaml").read_text(encoding="utf-8")
    assert text.count(old) == 1
    (tmp_path / "platform_map.yaml").write_text(text.replace(old, new), encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("release", ["0.5.17", "0.5.19", "0.5.23"])
@pytest.mark.parametrize("profile", ["card", "simulator"])
def test_every_bound_binding_resolves(release: str, profile: str) -> None:
    made = plan(release, profile)
    assert made.unresolved() == []
    bound = [b for b in made.bindings if b.status == "bound"]
    assert len(bound) >= 25
    assert len({b.id for b in made.bindings}) == len(made.bindings)


def test_the_right_spelling_is_chosen_by_release() -> None:
    names = {r: {m.key: m.name for m in plan(r).members} for r in ("0.5.19", "0.5.23")}
    assert names["0.5.19"]["kv_pool.mha"] == "get_mha_kv_pool_cls"
    assert names["0.5.23"]["kv_pool.mha"] == "get_kv_pool_cls"
    assert names["0.5.23"]["capabilities.graph_capture"] == "capabilities.graph_capture"


def test_a_range_moves_with_the_release() -> None:
    at = {
        r: next(h for h in plan(r).hooks if h.hook.id == "worker-affinity").at
        for r in ("0.5.19", "0.5.23")
    }
    assert at["0.5.19"].ignores and not at["0.5.23"].ignores


def test_what_is_left_out_says_why() -> None:
    made = plan("0.5.23")
    left = {b.id: b.status_why for b in made.bindings if b.status == "excluded"}
    assert left["support-triton"] == "it asks the platform's capabilities there"
    assert left["shim/sgl_kernel"] == "for the profile card only"
    assert all(left.values())


def test_profiles_choose_their_values() -> None:
    flags = {
        p: next(m.content for m in plan("0.5.23", p).members if m.key.endswith("graph_capture"))
        for p in ("card", "simulator")
    }
    assert flags == {"card": True, "simulator": False}


def test_an_unknown_profile_or_a_missing_map_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AdaptError, match="no profile"):
        plan("0.5.19", "toaster")
    with pytest.raises(AdaptError, match="no usable"):
        make_plan(Catalog(tmp_path, None, (), (), ()), LockFacts(read_lock(ROOT / LOCK_FILE), "1"))


def test_a_target_that_is_not_there_is_kept_as_missing(tmp_path: Path) -> None:
    root = workspace(
        tmp_path,
        "target: sglang.srt.utils.common.support_triton,",
        "target: sglang.srt.utils.common.support_tritonn,",
    )
    lost = plan("0.5.19", root=root).unresolved()
    assert [(b.id, type(m)) for b, m in lost] == [("support-triton", Missing)]


def test_on_missing_skip_leaves_it_out(tmp_path: Path) -> None:
    root = workspace(
        tmp_path,
        '      - {sglang: ">=0", target: sglang.srt.utils.common.support_triton, args: '
        "{backend: backend}}",
        '      - {sglang: ">=0", target: sglang.srt.utils.common.gone}\n    on_missing: skip',
    )
    made = plan("0.5.19", root=root)
    assert made.unresolved() == []
    binding = made.binding("support-triton")
    assert binding is not None and binding.status == "excluded" and not binding.required


def test_planned_is_not_bound(tmp_path: Path) -> None:
    root = workspace(
        tmp_path,
        "    remove_when: get_last_loc asks for the Triton capability",
        "    status: planned",
    )
    made = plan("0.5.19", root=root)
    binding = made.binding("last-loc")
    assert binding is not None
    assert (binding.status, binding.status_why) == ("planned", PLANNED)
    assert [h.hook.id for h in made.planned_hooks] == ["last-loc"]
    assert all(h.hook.id != "last-loc" for h in made.hooks)


@pytest.mark.parametrize(
    ("release", "index"),
    [("0.4", 1), ("0.5.11", 1), ("0.5.14", 1), ("0.5.16", 2), ("0.5.20", 0), ("0.6", 0)],
)
def test_the_nearest_range_stands_in(release: str, index: int) -> None:
    ranges = [">=0.5.18", ">=0.5.11,<0.5.14", "==0.5.15.*"]
    assert nearest_range(ranges, release) == index
    assert nearest_range([], release) is None


def test_beyond_claims_binds_the_nearest_range() -> None:
    made = plan("0.5.17", beyond_claims=True)
    binding = made.binding("gate_sigmoid_mul/fused_gate_sigmoid_mul")
    assert binding is not None and binding.status == "excluded"
    lock = read_lock(ROOT / LOCK_FILE)
    far = make_plan(load_catalog(ROOT), LockFacts(lock, "0.4.0"), "simulator", beyond_claims=True)
    near = make_plan(load_catalog(ROOT), LockFacts(lock, "0.4.0"), "simulator")
    assert sum(b.status == "bound" for b in far.bindings) > sum(
        b.status == "bound" for b in near.bindings
    )


def test_a_registered_forward_is_read_by_the_class_s_own_forward() -> None:
    norm = next(k for k in plan("0.5.19").kernels if k.bind.target.endswith("RMSNorm"))
    assert isinstance(norm.call, Symbol) and norm.call.signature is not None
    assert norm.call.signature.names[:3] == ("self", "x", "residual")


def test_an_added_member_needs_only_what_it_is_added_to(tmp_path: Path) -> None:
    root = workspace(
        tmp_path,
        "  - id: last-loc\n",
        "  - id: extra\n    why: a test\n    type: add\n    impl: 'json:dumps'\n    at:\n"
        "      - {target: sglang.srt.utils.common.no_such_function}\n  - id: last-loc\n",
    )
    made = plan("0.5.19", root=root)
    assert [b.id for b, _ in made.unresolved()] == ["extra"]  # the lock does not hold the module


def test_a_target_outside_sglang_is_planned(tmp_path: Path) -> None:
    root = workspace(
        tmp_path,
        "  - id: last-loc\n",
        "  - id: outside\n    why: a test\n    type: set\n    value: 1\n    at:\n"
        "      - {target: deep_gemm.x, package: deep_gemm}\n  - id: last-loc\n",
    )
    binding = plan("0.5.19", root=root).binding("outside")
    assert binding is not None and binding.status == "planned" and binding.status_why


STATED = (
    "\nmodels:\n  - {architecture: TinyForCausalLM, class: 'json:JSONDecoder', why: a test}\n"
    "communication: {warmup_bytes: 1024, groups: [tp], hook: HOOK, why: a test}\n\nhooks:\n"
)
# Names that the lock holds: only whether they are spelled matters here.
SPELLED = (
    "interface:\n  models: [{call: sglang.srt.runtime_context.get_server_args}]\n"
    "  group.tp: [{call: sglang.srt.runtime_context.get_server_args}]\n"
)


def test_what_the_interface_does_not_spell_is_planned_and_says_so(tmp_path: Path) -> None:
    root = workspace(tmp_path, "\nhooks:\n", STATED.replace("HOOK", "last-loc"))
    made = plan("0.5.19", root=root)
    assert made.models == () and made.warm_up is None
    said = {}
    for id in ("factory/models.TinyForCausalLM", "factory/communication"):
        binding = made.binding(id)
        assert binding is not None and not binding.required and binding.status == "planned"
        said[id] = binding.status_why
    assert said == {
        "factory/models.TinyForCausalLM": "interface.models does not say where this release "
        "keeps its model classes",
        "factory/communication": "interface.group.tp does not say what hands out that group",
    }
    assert plan("0.5.19").binding("factory/communication") is None


def test_models_and_the_warm_up_are_bound_where_they_are_spelled(tmp_path: Path) -> None:
    root = workspace(tmp_path, "\nhooks:\n", STATED.replace("HOOK", "last-loc"))
    edit = root / "platform_map.yaml"
    edit.write_text(edit.read_text().replace("interface:\n", SPELLED, 1))
    made = plan("0.5.19", root=root)
    assert [m.binding.id for m in made.models] == ["factory/models.TinyForCausalLM"]
    assert made.models[0].binding.required
    assert made.warm_up is not None and made.warm_up.binding.id == "last-loc"
    assert made.warm_up.bytes == 1024 and [name for name, _ in made.warm_up.groups] == ["tp"]
    assert made.binding("factory/communication") is None, "its hook is its binding"


@pytest.mark.parametrize(
    ("hook", "status", "reason"),
    [
        ("no-such-hook", "planned", "no hook is called no-such-hook"),
        ("model-parallel-groups", "excluded", "its hook model-parallel-groups is excluded"),
    ],
)
def test_the_warm_up_is_bound_as_its_hook_is(
    tmp_path: Path, hook: str, status: str, reason: str
) -> None:
    root = workspace(tmp_path, "\nhooks:\n", STATED.replace("HOOK", hook))
    binding = plan("0.5.19", root=root).binding("factory/communication")
    assert binding is not None and (binding.status, binding.status_why) == (status, reason)


def test_entries_for_one_architecture_are_its_ranges(tmp_path: Path) -> None:
    entries = (
        "\nmodels:\n  - {architecture: A, class: 'json:dumps', sglang: '<0.5.19', why: old}\n"
        "  - {architecture: A, class: 'json:loads', sglang: '>=0.5.23', why: new}\n\nhooks:\n"
    )
    root = workspace(tmp_path, "\nhooks:\n", entries)
    edit = root / "platform_map.yaml"
    edit.write_text(edit.read_text().replace("interface:\n", SPELLED, 1))
    for release, cls in (("0.5.17", "json:dumps"), ("0.5.23", "json:loads")):
        assert [m.model.cls for m in plan(release, root=root).models] == [cls]
    left = plan("0.5.19", root=root)
    assert left.models == () and left.binding("factory/models.A") is not None
    assert [m.model.cls for m in plan("0.5.19", root=root, beyond_claims=True).models]


def test_beyond_claims_the_nearest_spelling_stands_in() -> None:
    from kunlun_adapt.plan import spelled

    document = load_catalog(ROOT).platform_map
    assert document is not None
    model = document.model
    assert spelled(model, "capabilities.fp8", "0.5.24") is None
    newer = spelled(model, "capabilities.fp8", "0.5.24", True)
    assert newer is not None and newer.method == "supports_fp8"
    # The flags begin with a release inside the claim: what is older does without.
    assert spelled(model, "capabilities", "0.5.15", True) is None
    oldest = spelled(model, "capabilities.graph_capture", "0.5.15", True)
    assert oldest is not None and oldest.method == "support_cuda_graph"


def test_an_implementation_by_releases() -> None:
    for release, beyond, name in (
        ("0.5.17", False, "simulated_device"),
        ("0.5.11", True, "simulated_device_of_rank"),
        ("0.5.99", True, "simulated_device"),
    ):
        made = plan(release, root=ROOT, beyond_claims=beyond)
        (member,) = [m for m in made.members if m.key == "methods.get_device"]
        assert member.content == f"kunlun_adapt.hooks.host:{name}"


@pytest.mark.parametrize(
    ("ranges", "release", "claim", "index"),
    [
        ([">=0.5.17"], "0.5.15", ">=0.5.17,<0.5.24", 0),  # nobody looked at what is older
        ([">=0.5.13"], "0.5.11", ">=0.5.17", None),  # it began inside what was looked at
        ([">=0.5.19"], "0.5.15", ">=0.5.17", None),
        (["<0.5.13", ">=0.5.13,<0.5.24"], "0.5.30", ">=0.5.17", 1),
        ([], "0.5.30", ">=0.5.17", None),
    ],
)
def test_the_nearest_that_is_known(
    ranges: list[str], release: str, claim: str, index: int | None
) -> None:
    assert nearest_known(ranges, release, claim) == index

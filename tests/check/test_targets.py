# ruff: noqa: E501 -- the YAML lines of the tables stay whole
"""KA101 to KA105, and the kinds of KA110, KA111 and KA122: what is said of upstream's symbols."""

from __future__ import annotations

import pytest

from kunlun_adapt.diagnostics import Severity
from tests.check.bench import IMPLS, MAP, RECIPE, Bench
from tests.check.examples import ACTIVATION, AFFINITY, COMMON, EXAMPLES, lock_of
from tests.check.said import codes, only

RUNNER = "sglang/srt/runner.py"
CHOICES = "- {target: sglang.srt.utils.common.CHOICES}"


def hook(bench: Bench, type: str, target: str, how: str = "") -> Bench:
    """Put a third hook into the map."""
    value = "" if type in ("set", "extend", "add") else how
    if type == "register":
        value = ", readback: {target: sglang.srt.utils.common.CHOICES}"
    impl = "Pool" if target.endswith("GraphRunner") else "set_affinity"
    return bench.edit(
        MAP,
        "hooks:\n",
        f"""\
hooks:
  - id: third
    why: a third one
    type: {type}
    impl: "our_impls:{impl}"
    at:
      - {{target: {target}{value}}}
""",
    )


def test_a_skipped_binding_is_quiet_where_its_target_is_missing(bench: Bench) -> None:
    gone = bench.edit(MAP, CHOICES, "- {target: sglang.srt.utils.common.GONE}")
    assert codes(gone.findings()) == ["KA101"]
    skipped = gone.edit(MAP, "    type: extend", "    on_missing: skip\n    type: extend")
    report = skipped.report()
    assert codes(report.findings) == []
    assert report.excluded == 1


@pytest.mark.parametrize(
    ("old", "new", "at", "binding"),
    [
        ("SRTPlatform}", "SRTPlatfrm}", "sglang.srt.platforms.interface.SRTPlatfrm", "factory/platform"),
        ("run_scheduler_process}", "run_schedule}", "sglang.srt.managers.scheduler.run_schedule", None),
        ("runner:GraphRunner", "runer:GraphRunner", '"sglang.srt.runer:GraphRunner"', "factory/graph_runner"),
    ],
)  # fmt: skip
def test_every_place_that_names_upstream_is_looked_at(
    bench: Bench, old: str, new: str, at: str, binding: str | None
) -> None:
    changed = bench.edit(MAP, old, new)
    found = only(changed.findings(), "KA102" if "runer" in new else "KA101")
    assert str(found.position) == changed.place(MAP, at)
    assert found.binding == binding


def test_a_moved_class_of_a_factory_is_an_implementation_path(bench: Bench) -> None:
    found = only(bench.edit(MAP, "runner:Graph", "runer:Graph").findings(), "KA102")
    assert found.suggestion == "sglang.srt.runner:GraphRunner"


def test_two_likely_places_are_no_move(bench: Bench) -> None:
    twice = bench.add("sglang/srt/utils/other.py", "CHOICES = []\n")
    twice = twice.add("sglang/srt/utils/third.py", "CHOICES = []\n")
    gone = twice.edit(MAP, CHOICES, "- {target: sglang.srt.utils.fourth.CHOICES}")
    found = only(gone.findings(), "KA101")
    assert found.suggestion is not None and found.suggestion.count("CHOICES") == 3


def test_of_a_folder_without_a_file_the_package_around_it_is_shown(bench: Bench) -> None:
    target = "- {target: sglang.kernels.nowhere.Quux}"
    found = only(bench.edit(MAP, CHOICES, target).findings(), "KA101")
    assert str(found.upstream) == "sglang/__init__.py:1"
    in_package = target.replace("kernels.", "srt.plugins.")
    found = only(bench.edit(MAP, CHOICES, in_package).findings(), "KA101")
    assert str(found.upstream) == "sglang/srt/plugins/__init__.py:1"


def test_the_body_in_the_lock_tells_which_place_it_is(bench: Bench) -> None:
    lock = lock_of(bench)
    moved = bench.edit(COMMON, 'CHOICES = ["triton"]', "pass")
    moved = moved.add("sglang/srt/utils/alpha.py", 'CHOICES = ["other"]\n')
    moved = moved.add("sglang/srt/utils/omega.py", 'CHOICES = ["triton"]\n')
    found = [f for f in moved.findings(lock=lock) if f.code == "KA102"]
    assert [f.target for f in found] == ["sglang.srt.utils.common.CHOICES"]
    assert "sglang.srt.utils.omega.CHOICES" in found[0].message
    assert "the same body" in found[0].message


def test_the_edit_for_a_release_before_the_claims_ends_there(bench: Bench) -> None:
    changed = bench.version("0.5.11").edit(MAP, CHOICES, "- {target: sglang.srt.args.CHOICES}")
    found = only([f for f in changed.findings(beyond=True) if f.code == "KA102"], "KA102")
    assert (found.suggestion or "").startswith(
        '- {sglang: "<0.5.17", target: sglang.srt.utils.common.CHOICES}  # '
    )


def test_a_dangling_reexport_names_the_import(bench: Bench) -> None:
    found = only(EXAMPLES["KA103"].findings(bench), "KA103")
    assert str(found.upstream) == "sglang/srt/utils/old.py:1"


def test_what_is_near_in_a_broken_module_is_named_by_its_definition(bench: Bench) -> None:
    old = (
        "from sglang.srt.utils.common import CHOICES\nfrom sglang.srt.utils.common import CHOICE\n"
    )
    changed = bench.add("sglang/srt/utils/older.py", old)
    changed = changed.edit(MAP, CHOICES, "- {target: sglang.srt.utils.older.CHOICE}")
    found = only([f for f in changed.findings() if f.code == "KA103"], "KA103")
    assert "sglang.srt.utils.common.CHOICES" in (found.suggestion or "")
    assert "older.CHOICES" not in (found.suggestion or "")


def test_a_dangling_reexport_is_mended_where_the_name_is_elsewhere(bench: Bench) -> None:
    changed = bench.add("sglang/srt/utils/old.py", "from sglang.srt.runner import CHOICES\n")
    changed = changed.edit(MAP, CHOICES, "- {target: sglang.srt.utils.old.CHOICES}")
    found = only(changed.findings(), "KA103")
    assert (found.suggestion or "").startswith(
        '- {sglang: ">=0.5.19", target: sglang.srt.utils.common.CHOICES}  # '
    )


@pytest.mark.parametrize(
    ("text", "raises"),
    [
        ("from sglang.srt.utils.common import gone\n", True),
        ("from sglang.srt.utils.common import ENABLE\n", True),  # a part of a longer name
        ("from sglang.srt.gone import gone\n", True),
        ("from sglang.srt.gone import *\n", True),
        ("import sglang.srt.gone as gone\n", True),
        ("from sglang.srt.utils import common\n", False),
        ("from sglang.srt.utils.common import ENABLED\n", False),
        ("try:\n    from sglang.srt.gone import gone\nexcept ImportError:\n    pass\n", False),
        ("if version > 1:\n    from sglang.srt.gone import gone\n", False),
        (
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from sglang.gone import x\n",
            False,
        ),
        ("def f():\n    from sglang.srt.gone import gone\n", False),
    ],
)
def test_a_module_that_cannot_be_imported_holds_nothing_to_bind(
    bench: Bench, text: str, raises: bool
) -> None:
    changed = bench.add("sglang/srt/here.py", f"{text}def free(size):\n    pass\n")
    findings = hook(changed, "around", "sglang.srt.here.free", ", args: {size: size}").findings()
    if not raises:
        assert codes(findings) == []
    else:
        found = only(findings, "KA103")
        assert "sglang.srt.here, in which sglang.srt.here.free is looked up" in found.message
        assert str(found.upstream) == "sglang/srt/here.py:1"


def test_a_target_outside_upstream_says_who_provides_it(bench: Bench) -> None:
    foreign = bench.edit(MAP, CHOICES, "- {target: triton.runtime.driver.active}")
    found = only(foreign.findings(), "KA101")
    assert "provided_by" in (found.suggestion or "")
    stated = bench.edit(MAP, CHOICES, "- {target: triton.runtime.driver.active, package: triton}")
    assert [c for c in codes(stated.findings()) if c != "KA313"] == []


KINDS = [
    ("KA104", "around", "sglang.srt.runner.GraphRunner", "__init__"),
    ("KA104", "replace", "sglang.kernels.ops.activation.silu_kernel", "launches it"),
    ("KA104", "set", "sglang.srt.utils.common.set_affinity", "type: replace"),
    ("KA104", "extend", "sglang.srt.utils.common.set_affinity", "type: after"),
    ("KA104", "extend", "sglang.srt.runner.GraphRunner", "another type"),
    ("KA104", "add", "sglang.srt.runner.GraphRunner.replay", "type: replace"),
    ("KA110", "replace", "sglang.srt.runner", "a function in it"),
    ("KA110", "register", "sglang.srt.utils.common.ENABLED", "type: set"),
    ("KA111", "around", "sglang.srt.runner.GraphRunner.size", "property object"),
    ("KA111", "around", "sglang.srt.runner.GraphRunner.make", "target: sglang.srt.runner.Base.make"),
    ("KA122", "before", "sglang.srt.utils.common.ENABLED", "type: set"),
    ("KA122", "replace", "sglang.srt.utils.common.CHOICES", "type: extend"),
]  # fmt: skip


@pytest.mark.parametrize(("code", "type", "target", "suggests"), KINDS)
def test_a_kind_that_the_hook_cannot_have(
    bench: Bench, code: str, type: str, target: str, suggests: str
) -> None:
    said = hook(bench, type, target).findings()
    found = only([f for f in said if f.code in ("KA104", "KA109", "KA110", "KA111", "KA122")], code)
    assert (found.binding, found.target, found.severity) == ("third", target, Severity.ERROR)
    assert suggests in (found.suggestion or "")


FITTING = [
    ("replace", "sglang.srt.runner.GraphRunner", ""),
    ("around", "sglang.srt.runner.GraphRunner.wait", ", args: {seconds: seconds}"),
    ("after", "sglang.srt.runner.GraphRunner.wait", ", args: {seconds: seconds}"),
    (
        "before",
        "sglang.srt.runner.GraphRunner.replay",
        ", args: {b: batch}, ignores: {skip: false}",
    ),
    ("around", "sglang.srt.runner.Base.make", ", args: {size: size}"),
    ("set", "sglang.srt.utils.common.ENABLED", ""),
    ("extend", "sglang.srt.utils.common.CHOICES", ""),
    ("add", "sglang.srt.runner.GraphRunner.warm_up", ""),
    ("register", "sglang.srt.layers.fused.BaseFusedOp.register_oot_forward", ""),
]


@pytest.mark.parametrize(("type", "target", "how"), FITTING)
def test_a_kind_that_the_hook_can_have(bench: Bench, type: str, target: str, how: str) -> None:
    assert codes(hook(bench, type, target, how).findings()) == []


WAIT, REPLAY = "sglang.srt.runner.GraphRunner.wait", "sglang.srt.runner.GraphRunner.replay"


@pytest.mark.parametrize(
    ("type", "target", "how", "says"),
    [
        ("around", WAIT, ", args: {seconds: seconds}", None),
        ("after", WAIT, ", args: {seconds: seconds}", None),
        ("before", WAIT, ", args: {seconds: seconds}", "without awaiting it"),
        ("around", REPLAY, ", args: {b: batch, s: skip}", "callers would get a coroutine"),
    ],
)
def test_an_async_implementation(
    bench: Bench, type: str, target: str, how: str, says: str | None
) -> None:
    changed = hook(bench, type, target, how).add(IMPLS, "\n\nasync def late(call):\n    pass\n")
    changed = changed.edit(
        MAP,
        'impl: "our_impls:set_affinity"\n    at:\n      - {target',
        'impl: "our_impls:late"\n    at:\n      - {target',
    )
    findings = changed.findings()
    if says is None:
        assert codes(findings) == []
    else:
        found = only(findings, "KA111")
        assert says in found.message
        assert str(found.position) == changed.place(MAP, '"our_impls:late"')


def test_what_is_added_needs_a_class_to_be_added_to(bench: Bench) -> None:
    found = only(hook(bench, "add", "sglang.srt.runner.Gone.warm_up").findings(), "KA101")
    assert found.target == "sglang.srt.runner.Gone"


def test_an_op_that_torch_knows_is_a_warning(bench: Bench) -> None:
    changed = bench.edit(
        RECIPE, "activation.silu_and_mul\n    style", "activation.gelu_and_mul\n    style"
    )
    found = only(changed.findings(), "KA104")
    assert found.severity is Severity.WARNING and "torch.ops" in found.message


PLACES = [
    ("SiluAndMul\n    style: oot_forward", "Plain\n    style: oot_forward", "forward, style: function"),
    ("SiluAndMul\n    style: oot_forward", "Gone.x\n    style: oot_forward", None),
    ("SiluAndMul\n    style: oot_forward", "SiluAndMul\n    style: function", "oot_forward"),
    ("SiluAndMul\n    style: oot_forward", "SiluAndMul.forward_native\n    style: oot_forward",
     "style: function"),
    ("activation.silu_and_mul\n    style", "activation.silu_kernel\n    style", "launches it"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "suggests"), PLACES)
def test_a_kind_that_the_operator_cannot_have(
    bench: Bench, old: str, new: str, suggests: str | None
) -> None:
    findings = bench.edit(RECIPE, old, new).findings()
    kinds = [f for f in findings if f.code == "KA104"]
    if suggests is None:
        assert [f.code for f in findings] == ["KA101"]
    else:
        assert suggests in (only(kinds, "KA104").suggestion or "")


def test_a_member_spelled_as_the_other_kind(bench: Bench) -> None:
    field = bench.edit(MAP, "{method: get_graph_runner_cls}", "{field: get_graph_runner_cls}")
    found = only(field.findings(), "KA104")
    assert str(found.position) == field.place(MAP, "get_graph_runner_cls")
    assert found.suggestion == "spell it `method: get_graph_runner_cls`"
    method = bench.edit(MAP, "{field: device_name}", "{method: device_name}")
    assert only(method.findings(), "KA104").suggestion == "spell it `field: device_name`"


def test_an_argument_that_upstream_renamed(bench: Bench) -> None:
    changed = bench.edit(COMMON, "set_affinity(gpu_id, tp", "set_affinity(device_id, tp")
    mapped = only(changed.findings(), "KA105")
    assert str(mapped.position) == changed.place(MAP, "gpu_id}, ignores")
    assert "'gpu_id' reads 'gpu_id', which upstream does not have" in mapped.message
    assert "upstream: set_affinity(device_id, tp_size, nnodes=1)" in mapped.message
    assert mapped.suggestion == "did you mean device_id?"


def test_an_ignored_parameter_that_went_away(bench: Bench) -> None:
    changed = bench.edit(COMMON, ", nnodes=1)", ")")
    found = only(changed.findings(), "KA105")
    assert str(found.position) == changed.place(MAP, "nnodes: 1")
    assert found.suggestion == "drop it: `ignores: {tp_size: $any}`"
    assert str(found.upstream) == "sglang/srt/utils/common.py:4"


def test_the_list_form_is_told_apart(bench: Bench) -> None:
    changed = bench.edit(MAP, "ignores: {tp_size: $any, nnodes: 1}", "ignores: [tp_size, nnods]")
    found = only(changed.findings(), "KA105")
    assert str(found.position) == changed.place(MAP, "nnods]")
    assert found.suggestion == "did you mean nnodes?"
    other = bench.edit(MAP, "ignores: {tp_size: $any, nnodes: 1}", "ignores: [tp_size, gone]")
    passed, gone = other.findings()
    assert passed.suggestion == "`ignores: {tp_size: $any, nnodes: 1}`"
    assert gone.suggestion == "drop it: `ignores: {tp_size: $any, nnodes: 1}`"


def test_self_needs_no_mapping_and_may_be_read(bench: Bench) -> None:
    read = bench.edit(RECIPE, "args: {x: x}", "args: {x: x, out: self.out}")
    assert codes(read.findings()) == []


def test_collected_arguments_have_no_single_value(bench: Bench) -> None:
    collects = bench.edit(COMMON, "nnodes=1)", "nnodes=1, **extra)")
    found = only(collects.findings(), "KA105")
    assert "`ignores: {tp_size: $any, nnodes: 1, extra: $any}`" in (found.suggestion or "")
    wrong = collects.edit(MAP, "nnodes: 1}", "nnodes: 1, extra: null}")
    found = only(wrong.findings(), "KA105")
    assert str(found.position) == wrong.place(MAP, "extra: null")
    assert codes(collects.edit(MAP, "nnodes: 1}", "nnodes: 1, extra: $any}").findings()) == []


def test_an_operator_that_gets_nothing_for_a_parameter(bench: Bench) -> None:
    changed = bench.edit(RECIPE, "{x: input, out: out}", "{out: out}")
    nothing = only(changed.findings(), "KA105")
    assert "gets nothing" in nothing.message
    assert str(nothing.position) == changed.place(RECIPE, "{out: out}")
    assert nothing.suggestion == "`args: {out: out, x: input}`"


def test_a_grid_is_no_parameter_of_a_function(bench: Bench) -> None:
    changed = bench.edit(RECIPE, "out: out}", "out: $grid}")
    messages = [f.message for f in changed.findings()]
    assert any("only a launcher's call has" in m for m in messages)


def test_a_signature_that_is_served_is_quiet(bench: Bench) -> None:
    changed = bench.edit(ACTIVATION, "def silu_and_mul(input, out=None)",
                         "def silu_and_mul(input, out=None, limit=None)")  # fmt: skip
    changed = changed.edit(
        RECIPE,
        "args: {x: input, out: out}",
        "args: {x: input, out: out}\n    ignores: {limit: null}",
    )
    assert codes(changed.findings()) == []
    assert AFFINITY in bench.workspace[MAP]


def test_a_reference_to_repair_that_is_not_there(bench: Bench) -> None:
    hook = "    value: [kunlun]\n"
    there = bench.edit(MAP, hook, f"{hook}    repair: [sglang.srt.utils.common.ENABLED]\n")
    assert codes(there.findings(lock=lock_of(bench))) == []
    changed = bench.edit(MAP, hook, f"{hook}    repair: [sglang.srt.utils.common.ENABLE]\n")
    found = only(changed.findings(), "KA101")
    assert str(found.position) == changed.place(MAP, "sglang.srt.utils.common.ENABLE]")
    assert found.binding == "choices"


def test_what_another_binding_is_about_is_no_place_to_move_to(bench: Bench) -> None:
    """Two functions of one name stood side by side; one of them is gone."""
    gone = "      - {target: sglang.srt.gone.common.CHOICES}\n"
    hook = f"  - id: more\n    why: a second list\n    type: extend\n    value: [kunlun]\n    at:\n{gone}"
    changed = bench.edit(MAP, "  - id: choices\n", f"{hook}  - id: choices\n")
    found = only(changed.findings(), "KA101")
    assert found.binding == "more"


@pytest.mark.parametrize(
    ("upstream", "ours", "said"),
    [
        ("yield seconds", "yield call", None),
        ("return seconds", "return call", None),
        ("yield seconds", "return call", "who iterates would get a coroutine"),
        ("return seconds", "yield call", "who awaits would get a generator"),
    ],
)
def test_async_generators_and_coroutines(
    bench: Bench, upstream: str, ours: str, said: str | None
) -> None:
    """Both are `async def`; only one of them can be awaited, and only one iterated."""
    changed = bench.edit("sglang/srt/runner.py", "return seconds", upstream)
    target = "sglang.srt.runner.GraphRunner.wait"
    changed = hook(changed, "around", target, ", args: {seconds: seconds}")
    changed = changed.add(IMPLS, f"\n\nasync def late(call):\n    {ours}\n")
    changed = changed.edit(
        MAP, 'around\n    impl: "our_impls:set_affinity"', 'around\n    impl: "our_impls:late"'
    )
    if said is None:
        assert codes(changed.findings()) == []
    else:
        assert said in only(changed.findings(), "KA111").message

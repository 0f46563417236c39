# ruff: noqa: E501 -- the YAML lines stay whole
"""KA402 to KA407: bindings that meet, and processes that bind nothing."""

from __future__ import annotations

import pytest

from kunlun_adapt.documents import load_catalog
from kunlun_adapt.plan import make_plan
from tests.check.all_examples import EXAMPLES
from tests.check.bench import MAP, RECIPE, Bench
from tests.check.examples import COMMON
from tests.check.examples_combinations import AFFINITY, CONFLICT, HOW, RUNNER, group, hooked
from tests.check.said import codes, only

SCHEDULER = "sglang/srt/managers/scheduler.py"
RUNS = "sglang.srt.managers.scheduler.run_scheduler_process"
ALONE = '  - id: affinity\n    why: pin each worker to the cores near its card\n    type: replace\n    impl: "our_impls:set_affinity"\n'


def affinity(bench: Bench, old: str, new: str) -> Bench:
    """Change the first lines of the map's own hook."""
    return bench.edit(MAP, ALONE, ALONE.replace(old, new))


def timed(bench: Bench, *more: str, type: str = "around", target: str = AFFINITY) -> Bench:
    return hooked(bench, "timing", type, f"{target}, {HOW}", *more)


def decided(bench: Bench, one: str, other: str) -> Bench:
    row = f'  - {{between: [{one}, {other}], decision: both, recorded: "2026-01-01"}}\n'
    return bench.edit(MAP, "stack:\n", f"conflicts:\n{row}stack:\n")


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("KA401", ("pinning", "affinity")),
        ("KA402", ("runner", "replay")),
        ("KA403", ("timing", "affinity")),
        ("KA404", ("pin-all", "affinity")),
        ("KA405", ("silu", "silu_and_mul")),
    ],
)
def test_a_decision_settles_each(bench: Bench, code: str, names: tuple[str, str]) -> None:
    changed = EXAMPLES[code].change(bench)
    assert codes(changed.findings()) == [code]
    assert codes(decided(changed, *names).findings()) == []
    assert codes(decided(changed, names[0], "choices").findings()) == [code]


# --- order -----------------------------------------------------------------------------------


def test_a_stated_order_is_enough(bench: Bench) -> None:
    assert codes(timed(bench, "runs_after: [affinity]").findings()) == []


def test_an_order_through_a_third_hook(bench: Bench) -> None:
    changed = timed(bench, "runs_after: [counting]")
    changed = hooked(changed, "counting", "before", f"{AFFINITY}, {HOW}", "runs_after: [affinity]")
    assert codes(changed.findings()) == []


def test_a_replacement_cannot_come_after_a_wrapper(bench: Bench) -> None:
    changed = affinity(
        timed(bench), "    type: replace\n", "    type: replace\n    runs_after: [timing]\n"
    )
    found = only(changed.findings(), "KA403")
    assert "puts affinity in first whatever `runs_after` says" in found.message


def test_names_that_differ_cannot_be_ordered(bench: Bench) -> None:
    changed = bench.edit(
        "sglang/srt/utils/old.py", "import vanished", "import vanished, set_affinity"
    )
    other = "sglang.srt.utils.old.set_affinity"
    changed = timed(changed, "runs_after: [affinity]", target=other)
    findings = [f for f in changed.findings() if f.code == "KA403"]
    assert f"name {AFFINITY} in both" in (only(findings, "KA403").suggestion or "")


@pytest.mark.parametrize(
    ("one", "other", "met"),
    [
        ("before", "after", False),
        ("before", "before", True),
        ("after", "after", True),
        ("around", "before", True),
        ("around", "around", True),
    ],
)
def test_which_wrappers_meet(bench: Bench, one: str, other: str, met: bool) -> None:
    changed = affinity(timed(bench, type=one), "type: replace", f"type: {other}")
    assert [f.code for f in changed.findings() if f.code == "KA403"] == ["KA403"] * met


def test_wrappers_of_two_processes_do_not_meet(bench: Bench) -> None:
    changed = affinity(
        timed(bench, "process: [main]"), "    type", "    process: [scheduler]\n    type"
    )
    assert codes(changed.findings()) == []


def test_a_planned_hook_counts(bench: Bench) -> None:
    findings = timed(bench, "status: planned").findings()
    assert "KA403" in codes(findings)


def test_hooks_are_planned_in_the_stated_order(bench: Bench) -> None:
    changed = timed(bench, "runs_after: [affinity]")
    changed = hooked(changed, "counting", "before", f"{AFFINITY}, {HOW}", "runs_after: [timing]")
    assert codes(changed.findings()) == []
    plan = make_plan(load_catalog(bench.root / "workspace"), changed.resolver())
    assert [h.binding.id for h in plan.hooks] == ["affinity", "timing", "counting", "choices"]
    assert [b.id for b in plan.bindings if b.kind == "hook"] == [
        "counting", "timing", "affinity", "choices",
    ]  # fmt: skip


def test_an_order_that_names_nothing(bench: Bench) -> None:
    found = [f for f in timed(bench, "runs_after: [afinity]").findings() if f.code == "KA005"]
    assert only(found, "KA005").suggestion == "did you mean affinity?"


def test_an_order_that_comes_round(bench: Bench) -> None:
    changed = timed(bench, "runs_after: [choices]")
    changed = changed.edit(
        MAP, "    value: [kunlun]\n", "    value: [kunlun]\n    runs_after: [timing]\n"
    )
    found = [f for f in changed.findings() if f.code == "KA005"]
    assert sorted(f.message for f in found) == [
        "choices is to run after itself: choices after timing after choices",
        "timing is to run after itself: timing after choices after timing",
    ]
    alone = timed(bench, "runs_after: [timing]").findings()
    assert "KA005" in codes(alone)
    plan = make_plan(load_catalog(bench.root / "workspace"), changed.resolver())
    assert len(plan.hooks) == 3


# --- classes and groups ----------------------------------------------------------------------


def test_a_class_that_is_set(bench: Bench) -> None:
    changed = EXAMPLES["KA402"].change(bench)
    start = changed.workspace[MAP].index("  - id: runner")
    end = changed.workspace[MAP].index("  - id: replay")
    block = changed.workspace[MAP][start:end]
    changed = changed.edit(MAP, block, block.replace("type: replace", "type: set"))
    assert codes(changed.findings()) == ["KA402"]


def test_a_hook_beside_the_replaced_class(bench: Bench) -> None:
    changed = hooked(bench, "runner", "replace", f"{RUNNER}")
    changed = changed.edit(
        MAP,
        '"our_impls:set_affinity"\n    at:\n      - {target: sglang.srt.runner.GraphRunner}',
        '"our_impls:Pool"\n    at:\n      - {target: sglang.srt.runner.GraphRunner}',
    )
    changed = hooked(changed, "make", "around", "sglang.srt.runner.Base.make, args: {size: size}")
    assert "KA402" not in codes(changed.findings())


def test_a_watched_caller_is_enough(bench: Bench) -> None:
    watch = "    watch: [sglang.srt.utils.common.pin_all]\n"
    changed = affinity(group(bench), "    type: replace\n", f"    type: replace\n{watch}")
    assert codes(changed.findings()) == []


@pytest.mark.parametrize(
    ("type", "body", "split"),
    [
        ("replace", "set_affinity(gpu_id, 1)", True),
        ("around", "set_affinity(gpu_id, 1)", False),
        ("replace", "other.set_affinity(gpu_id, 1)", False),
        ("replace", "return set_affinity", False),
    ],
)
def test_what_a_replaced_caller_calls(bench: Bench, type: str, body: str, split: bool) -> None:
    changed = bench.add(COMMON, f"\n        def pin_all(gpu_id):\n            {body}\n")
    target = "sglang.srt.utils.common.pin_all, args: {gpu_id: gpu_id}"
    findings = hooked(changed, "pin-all", type, target).findings()
    assert codes(findings) == ["KA404"] * split


def test_methods_call_each_other_on_self(bench: Bench) -> None:
    changed = bench.edit("sglang/srt/runner.py", "return batch", "return self.prepare(batch)")
    changed = changed.edit(
        "sglang/srt/runner.py",
        "def replay(self",
        "def prepare(self, batch):\n                return batch\n\n            def replay(self",
    )
    changed = hooked(changed, "prepare", "before", f"{RUNNER}.prepare, args: {{batch: batch}}")
    changed = hooked(
        changed, "replay", "replace", f"{RUNNER}.replay, args: {{batch: batch}}, ignores: [skip]"
    )
    found = only([f for f in changed.findings() if f.code == "KA404"], "KA404")
    assert found.binding == "prepare"
    assert str(found.upstream).startswith("sglang/srt/runner.py:")


def test_what_a_planned_caller_will_call_is_not_known(bench: Bench) -> None:
    changed = group(bench).edit(MAP, "  - id: pin-all\n", "  - id: pin-all\n    status: planned\n")
    assert "KA404" not in codes(changed.findings())


def test_a_wrapping_hook_on_a_kernel_says_so(bench: Bench) -> None:
    changed = EXAMPLES["KA405"].change(bench)
    changed = changed.edit(MAP, "    type: replace\n    impl: \"our_impls:set_affinity\"\n    at:\n      - {target: sglang.kernels",
                           "    type: around\n    impl: \"our_impls:set_affinity\"\n    at:\n      - {target: sglang.kernels")  # fmt: skip
    assert "the hook wraps our kernel" in only(changed.findings(), "KA405").message


def test_a_hook_and_a_kernel_under_two_names(bench: Bench) -> None:
    changed = hooked(
        bench, "silu", "replace", "sglang.kernels.ops.silu_and_mul, args: {x: input, out: out}"
    )
    found = only([f for f in changed.findings() if f.code != "KA108"], "KA405")
    assert "both names mean sglang.kernels.ops.activation.silu_and_mul" in found.message


# --- conflicts -------------------------------------------------------------------------------


def test_a_side_that_is_left_out(bench: Bench) -> None:
    changed = EXAMPLES["KA406"].change(bench)
    for line in (
        '    excluded: [{sglang: ">=0", why: the other one stays}]\n',
        "    status: planned\n",
    ):
        out = changed.edit(MAP, "    value: [kunlun]\n", f"    value: [kunlun]\n{line}")
        assert "KA406" not in codes(out.findings())


def test_sides_of_two_profiles(bench: Bench) -> None:
    changed = EXAMPLES["KA406"].change(bench)
    changed = changed.edit(
        MAP, "    value: [kunlun]\n", "    value: [kunlun]\n    profiles: [card]\n"
    )
    changed = affinity(changed, "    type", "    profiles: [simulator]\n    type")
    assert codes(changed.findings()) == []


def test_the_kept_side_is_not_there(bench: Bench) -> None:
    changed = EXAMPLES["KA406"].change(bench)
    changed = affinity(
        changed, "    type", '    excluded: [{sglang: ">=0", why: upstream does it}]\n    type'
    )
    assert "KA406" not in codes(changed.findings())


@pytest.mark.parametrize(
    "name", ["silu_and_mul", "silu_and_mul/SiluAndMul", "kv_pool.mha", "factory/kv_pool.mha"]
)
def test_sides_by_every_name(bench: Bench, name: str) -> None:
    row = CONFLICT.replace("[affinity, choices]", f"[affinity, {name}]")
    found = only(bench.edit(MAP, "hooks:\n", f"{row}hooks:\n").findings(), "KA406")
    assert found.binding == name


def test_what_is_kept_is_one_of_them(bench: Bench) -> None:
    row = CONFLICT.replace("keep: affinity", "keep: afinity")
    found = bench.edit(MAP, "hooks:\n", f"{row}hooks:\n").findings()
    assert "keep names 'afinity', which is not in between" in only(found, "KA002").message


def test_without_keep_both_stay(bench: Bench) -> None:
    row = CONFLICT.replace("keep: affinity, ", "")
    assert codes(bench.edit(MAP, "hooks:\n", f"{row}hooks:\n").findings()) == []


# --- processes -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "loads"),
    [
        ("load_plugins()", True),
        ("plugins.load_plugins()", True),
        ("_prepare()\n\ndef _prepare():\n    load_plugins()", True),
        (
            "Scheduler()\n\nclass Scheduler:\n    def __init__(self):\n        self.open()\n\n    def open(self):\n        load_plugins()",
            True,
        ),
        (
            "Scheduler.make()\n\nclass Scheduler:\n    @classmethod\n    def make(cls):\n        load_plugins()",
            True,
        ),
        ("_prepare\n\ndef _prepare():\n    load_plugins()", False),
        ("Scheduler()\n\nclass Scheduler:\n    def close(self):\n        load_plugins()", False),
        ("run_scheduler_process(server_args)", False),
        ("unknown()", False),
    ],
)
def test_where_a_process_loads_plugins(bench: Bench, body: str, loads: bool) -> None:
    changed = bench.edit(SCHEDULER, "load_plugins()", body)
    assert codes(changed.findings()) == ([] if loads else ["KA407"])
    stated = changed.edit(MAP, f"{{call: {RUNS}}}", f"{{call: {RUNS}, loads_plugins: false}}")
    assert codes(stated.findings()) == (["KA407"] if loads else [])


def test_a_class_that_stands_as_a_default(bench: Bench) -> None:
    changed = bench.edit(
        SCHEDULER,
        "(server_args):\n    load_plugins()",
        "(server_args, made=Scheduler):\n    made()\n\nclass Scheduler:\n    def __init__(self):\n        load_plugins()",
    )
    assert codes(changed.findings()) == []


def test_a_process_that_loads_plugins_against_the_map(bench: Bench) -> None:
    stated = bench.edit(MAP, f"{{call: {RUNS}}}", f"{{call: {RUNS}, loads_plugins: false}}")
    found = only(stated.findings(), "KA407")
    assert str(found.position) == stated.place(MAP, RUNS)
    assert "before other plugins register theirs" in found.message
    assert found.suggestion == "drop `loads_plugins: false` for sglang 0.5.19"


def test_a_process_that_the_map_does_not_spell(bench: Bench) -> None:
    changed = affinity(bench, "    type", "    process: [main, detokenizer]\n    type")
    found = only(changed.findings(), "KA407")
    assert str(found.position) == changed.place(MAP, "detokenizer]")
    assert found.suggestion and "process.detokenizer" in found.suggestion


@pytest.mark.parametrize(
    ("target", "process", "begun"),
    [
        ("run_scheduler_process", "", True),
        ("run_scheduler_process", "    process: [main, scheduler]\n", True),
        ("run_scheduler_process", "    process: [main]\n", False),
        ("Scheduler.step", "", False),
        ("helper", "", False),
    ],
)
def test_what_runs_before_hooks_are_applied(
    bench: Bench, target: str, process: str, begun: bool
) -> None:
    changed = bench.edit(
        SCHEDULER,
        "load_plugins()\n",
        "load_plugins()\n    Scheduler()\n    helper()\n\ndef helper(server_args):\n    pass\n\n"
        "class Scheduler:\n    def step(self, server_args):\n        pass\n",
    )
    path = f"{RUNS.rpartition('.')[0]}.{target}, args: {{server_args: server_args}}"
    changed = hooked(changed, "step", "around", path)
    changed = changed.edit(MAP, "  - id: step\n", f"  - id: step\n{process}")
    found = [f for f in changed.findings() if f.code == "KA407"]
    assert len(found) == begun
    if begun:
        assert found[0].suggestion == "hook what it calls"
        assert str(found[0].position) == changed.place(
            MAP, f"{RUNS.rpartition('.')[0]}.{target}, args"
        )


def test_two_operators_on_one_function(bench: Bench) -> None:
    other = bench.workspace[RECIPE].replace("name: silu_and_mul", "name: other")
    findings = bench.add("operator_recipes/other.yaml", other).findings()
    assert {f.code for f in findings} == {"KA401"}


@pytest.mark.parametrize(("leaf", "said"), [("forward_native", True), ("extra_native", False)])
def test_a_forward_of_a_class_that_an_operator_serves(bench: Bench, leaf: str, said: bool) -> None:
    """Upstream calls the registered forward, whatever stands in those for single devices."""
    head = "class SiluAndMul(BaseFusedOp):\n"
    body = "            def extra_native(self, x):\n                return x\n\n"
    changed = bench.edit("sglang/srt/layers/activation.py", head, head + body)
    target = f"sglang.srt.layers.activation.SiluAndMul.{leaf}"
    changed = hooked(changed, "third", "around", f"{target}, args: {{x: x}}")
    found = [f for f in changed.findings() if f.code == "KA405"]
    assert len(found) == said
    assert all("the hook is not reached" in f.message and f.binding == "third" for f in found)
    settled = decided(changed, "third", "silu_and_mul")
    assert "KA405" not in codes(settled.findings())

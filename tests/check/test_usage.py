"""What is said of the way upstream uses the targets, and that the lock keeps it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kunlun_adapt.check import Context, usage
from kunlun_adapt.check.rules import excluded_but_there
from kunlun_adapt.check.usage import row_digest, usage_digest, usage_findings, usage_row
from kunlun_adapt.diagnostics import Finding
from kunlun_adapt.plan import make_plan
from kunlun_adapt.upstream import Lock, Resolver, lock_release, parse_lock
from tests.check.bench import MAP, RECIPE, Bench
from tests.check.examples import ACTIVATION, AFFINITY, COMMON
from tests.check.examples_usage import CALL, ENGINE, NESTED, hook, launcher, loaded, used
from tests.check.said import codes, only

PINNED = "sglang.srt.utils.common.set_affinity"
SETS = hook("set", "sglang.srt.utils.common.ENABLED", "value: false")
COPY = "\nfrom sglang.srt.utils.common import ENABLED\n\n\ndef enabled():\n    return ENABLED\n"
RUNNER = "sglang/srt/runner.py"


def test_what_is_used_as_it_should_be_gives_no_finding(bench: Bench) -> None:
    assert not used(bench).findings()


# KA115: calls that our mapping of the call refuses


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("set_affinity(0, 8, 2)", "nnodes=2 in sglang/srt/engine.py:6"),
        ("set_affinity(0, tp_size=8, nnodes=2)", "nnodes=2"),
        ("set_affinity(0, 8, nnodes=None)", "nnodes=None"),
        ("set_affinity(*backend, nnodes=2)", "nnodes=2"),
    ],
)
def test_another_literal_is_refused(bench: Bench, call: str, said: str) -> None:
    found = only(used(bench).edit(ENGINE, CALL, call).findings(), "KA115")
    assert f"upstream passes {said}" in found.message
    assert str(found.upstream) == "sglang/srt/engine.py:6"


@pytest.mark.parametrize(
    "call",
    [
        "set_affinity(0, 8, 1)",
        "set_affinity(0, 8, nnodes=backend.nnodes)",
        "set_affinity(*backend)",
        "set_affinity(**backend)",
        "set_affinity(0, 16)",
    ],
)
def test_the_allowed_value_and_what_the_text_does_not_tell_pass(bench: Bench, call: str) -> None:
    assert not used(bench).edit(ENGINE, CALL, call).findings()


def test_the_places_of_one_parameter_are_listed_together(bench: Bench) -> None:
    calls = "set_affinity(0, 8, 2)\n    set_affinity(0, 8, 3)\n    " * 5
    changed = used(bench).edit(ENGINE, CALL, calls + "pass")
    found = only(changed.findings(), "KA115")
    assert "nnodes=2 in sglang/srt/engine.py:6, " in found.message
    assert "; nnodes=3 in sglang/srt/engine.py:7, " in found.message


def test_a_method_is_called_without_its_receiver(bench: Bench) -> None:
    skips = hook("around", "sglang.srt.runner.GraphRunner.replay", 'impl: "our_impls:set_affinity"')
    edit = skips[1].replace("replay}", "replay, args: {batch: batch}, ignores: {skip: false}}")
    text = """
        from sglang.srt.runner import GraphRunner

        def go(runner: GraphRunner, batch):
            runner.replay(batch, HOW)
            GraphRunner.replay(runner, batch, False)
    """
    changed = used(bench).edit(MAP, skips[0], edit)
    found = changed.add("sglang/srt/go.py", text.replace("HOW", "True")).findings()
    assert "skip=True in sglang/srt/go.py:5, and" in only(found, "KA115").message
    assert not changed.add("sglang/srt/go.py", text.replace("HOW", "False")).findings()


def test_tests_of_upstream_do_not_count(bench: Bench) -> None:
    text = f"from sglang.srt.utils.common import set_affinity\n\n\ndef test():\n    {CALL}\n"
    text = text.replace("8)", "8, 2)")
    assert not used(bench).add("sglang/test/test_affinity.py", text).findings()


# KA117: values that are read on import


def test_a_copy_of_a_constant_is_told(bench: Bench) -> None:
    changed = loaded(used(bench).add(ENGINE, COPY), "sglang.srt.engine").edit(MAP, *SETS)
    found = only(changed.findings(), "KA117")
    assert "ENABLED is copied on import in sglang/srt/engine.py:10" in found.message


def test_what_is_imported_later_or_repaired_is_no_copy(bench: Bench) -> None:
    copied = used(bench).add(ENGINE, COPY).edit(MAP, *SETS)
    assert not copied.findings()
    repaired = loaded(copied, "sglang.srt.engine").edit(
        MAP, "    value: false\n", "    value: false\n    repair: [sglang.srt.engine.ENABLED]\n"
    )
    assert not repaired.findings()


def test_the_whole_of_what_is_repaired_is_suggested(bench: Bench) -> None:
    kept = "    value: false\n    repair: [sglang.srt.engine.ENABLED]\n"
    copied = used(bench).add(ENGINE, COPY).add("sglang/srt/other.py", COPY).edit(MAP, *SETS)
    changed = loaded(loaded(copied, "sglang.srt.engine"), "sglang.srt.other")
    found = only(changed.edit(MAP, "    value: false\n", kept).findings(), "KA117")
    assert "is copied on import in sglang/srt/other.py:2, and" in found.message
    both = "`repair: [sglang.srt.engine.ENABLED, sglang.srt.other.ENABLED]`"
    assert found.suggestion == f"repair the copies: {both}"


@pytest.mark.parametrize("other", [False, True])
def test_what_hands_a_constant_on_is_no_copy_of_itself(bench: Bench, other: bool) -> None:
    sets = hook("set", "sglang.srt.engine.ENABLED", "value: false")
    copied = loaded(used(bench).add(ENGINE, COPY).edit(MAP, *sets), "sglang.srt.engine")
    if other:
        copied = loaded(copied.add("sglang/srt/other.py", COPY), "sglang.srt.other")
    found = [f for f in copied.findings() if f.code == "KA117"]
    tips = ["repair the copies: `repair: [sglang.srt.other.ENABLED]`"] if other else []
    assert [f.suggestion for f in found] == tips


def test_what_is_computed_from_a_constant_on_import_counts(bench: Bench) -> None:
    changed = used(bench).add(COMMON, "\nLIMIT = 8 if ENABLED else 4\n").edit(MAP, *SETS)
    found = only(changed.findings(), "KA117")
    assert "sglang/srt/utils/common.py:7" in found.message


def test_a_function_called_on_import_is_told(bench: Bench) -> None:
    changed = used(bench).add(COMMON, "\nFIRST = set_affinity(0, 8)\n")
    found = only(changed.findings(), "KA117")
    assert "set_affinity is called on import in sglang/srt/utils/common.py:7" in found.message


@pytest.mark.parametrize(
    "text",
    [
        "\nif _is_hip:\n    FIRST = set_affinity(0, 8)\n",
        "\nif __name__ == '__main__':\n    set_affinity(0, 8)\n",
        "\ndef later():\n    return set_affinity(0, 8)\n",
        "\nlater = lambda: set_affinity(0, 8)\n",
    ],
)
def test_what_does_not_run_on_import_is_not_told(bench: Bench, text: str) -> None:
    assert not used(bench).add(COMMON, text).findings()


def test_of_a_kernel_only_its_own_module_is_too_early(bench: Bench) -> None:
    other = loaded(used(bench), "sglang.srt.engine").add(ENGINE, "\nWARM = silu_and_mul(1)\n")
    assert not other.findings()
    own = used(bench).add(ACTIVATION, "\nWARM = silu_and_mul(1)\n")
    assert "acts only when its module is imported" in only(own.findings(), "KA117").message


# KA118: references that patching does not reach


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('\nBY_NAME = {"numa": set_affinity}\n', "held in BY_NAME"),
        ("\nEACH = [set_affinity, None]\n", "held in EACH"),
        ("\nPLAIN = (set_affinity,)\n", "held in PLAIN"),
        ("\nclass Tool:\n    pin = set_affinity\n", "held as the class attribute pin"),
        ("\nclass Tool:\n    pins = [set_affinity]\n", "held in pins"),
        ("\ndef go(pin=set_affinity):\n    pass\n", "a default argument"),
        ("\nHALF = functools.partial(set_affinity, 0)\n", "wrapped in a partial"),
        ("\n@set_affinity\ndef go():\n    pass\n", "used as a decorator"),
        ("\nregister(set_affinity)\n", "passed on"),
    ],
)
def test_what_holds_a_function_is_told(bench: Bench, text: str, said: str) -> None:
    found = only(used(bench).add(COMMON, text).findings(), "KA118")
    assert said in found.message
    assert found.upstream is not None and found.upstream.file == COMMON


@pytest.mark.parametrize(
    "text",
    [
        "\npin = set_affinity\n",  # HookRegistry rewrites the names of modules
        "\ndef go():\n    return [set_affinity]\n",
        "\nif TYPE_CHECKING:\n    PINS = [set_affinity]\n",
        "\ndef go(pin: set_affinity):\n    pass\n",
    ],
)
def test_what_patching_reaches_is_not_told(bench: Bench, text: str) -> None:
    assert not used(bench).add(COMMON, text).findings()


def test_what_is_repaired_is_not_told(bench: Bench) -> None:
    changed = used(bench).add(COMMON, '\nBY_NAME = {"numa": set_affinity}\n')
    repair = "    repair: [sglang.srt.utils.common.BY_NAME]\n    why: pin each"
    assert not changed.edit(MAP, "    why: pin each", repair).findings()


def test_another_name_in_the_kernels_own_module_stays_the_original(bench: Bench) -> None:
    changed = used(bench).add(ACTIVATION, "\nswiglu = silu_and_mul\n")
    assert "also called swiglu" in only(changed.findings(), "KA118").message


def test_a_subclass_keeps_the_base_that_it_was_made_with(bench: Bench) -> None:
    impl = hook("replace", "sglang.srt.layers.activation.Plain", 'impl: "our_impls:Pool"')
    changed = used(bench).edit(MAP, *impl)
    below = "\n\nclass Below(Plain):\n    pass\n\n\ndef make():\n    return Below(), Plain()\n"
    found = only(changed.add("sglang/srt/layers/activation.py", below).findings(), "KA118")
    assert "the base of Below" in found.message


# KA119: targets that nothing uses


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\nfrom sglang.srt.utils.common import set_affinity as pin\n",
        '\n__all__ = ["set_affinity"]\n',
        "\ndef go(pin: set_affinity):\n    pass\n",
    ],
)
def test_a_target_without_a_use_is_vacuous(bench: Bench, text: str) -> None:
    changed = used(bench).edit(ENGINE, CALL, "pass").add(ENGINE, text)
    found = only(changed.findings(), "KA119")
    assert "calls or names set_affinity outside of tests" in found.message


@pytest.mark.parametrize(
    "text",
    [
        '\nNAME = "sglang.srt.utils.common:set_affinity"\n',
        "\nfrom sglang.srt.utils import common\n\n\ndef go():\n    common.set_affinity(0, 8)\n",
        "\nimport sglang.srt.utils.common as c\n\n\ndef go():\n    return [c.set_affinity]\n",
        "\ndef go():\n    from sglang.srt.utils.common import set_affinity as f\n    f(0, 8)\n",
    ],
)
def test_any_other_mention_is_a_use(bench: Bench, text: str) -> None:
    changed = used(bench).edit(ENGINE, CALL, "pass").add("sglang/srt/other.py", text)
    assert not changed.findings()


def test_recursion_is_no_use(bench: Bench) -> None:
    changed = used(bench).edit(ENGINE, CALL, "pass")
    changed = changed.edit(COMMON, "return gpu_id", "return set_affinity(gpu_id, tp_size)")
    assert codes(changed.findings()) == ["KA119"]


def test_a_class_that_nothing_makes_is_vacuous_for_its_forward_too(bench: Bench) -> None:
    changed = used(bench).edit(
        ENGINE, "SiluAndMul()(silu_and_mul(backend))", "silu_and_mul(backend)"
    )
    found = only(changed.findings(), "KA119")
    assert found.binding == "silu_and_mul/SiluAndMul"
    assert "makes or derives from SiluAndMul" in found.message


# KA120: kernels that only kernels call


def test_a_kernel_inside_kernels_is_refused(bench: Bench) -> None:
    found = only(
        [f for f in launcher(bench).add(ACTIVATION, NESTED).findings() if f.code != "KA313"],
        "KA120",
    )
    assert "launches: outer_kernel" in (found.suggestion or "")


def test_a_kernel_that_is_launched_as_well_is_bound(bench: Bench) -> None:
    launch = "\n        def go(x):\n            silu_kernel[(1,)](x, x)\n"
    changed = launcher(bench).add(ACTIVATION, NESTED + launch)
    assert codes(changed.findings()) == ["KA313"]


# KA121: releases that are left out although they have it


MOVED = AFFINITY.replace("utils.common", "server_args")
GONE = '    excluded: [{sglang: ">=0.5.19", why: it is gone}]\n    why: pin each'


def test_a_name_that_stands_elsewhere_is_told(bench: Bench) -> None:
    changed = used(bench).edit(MAP, AFFINITY, MOVED).edit(MAP, "    why: pin each", GONE)
    found = only(changed.findings(), "KA121")
    assert f"where {PINNED} has the same name" in found.message
    said = f'- {{sglang: ">=0.5.19", target: {PINNED}, args: {{gpu_id: gpu_id}}, ignores: '
    assert found.suggestion is not None and found.suggestion.startswith(said)
    assert found.suggestion.endswith("; and drop the exclusion")


def test_of_several_places_of_a_name_the_nearest_is_told(bench: Bench) -> None:
    far = "def set_affinity(gpu_id, tp_size, nnodes=1):\n    return 0\n"
    changed = used(bench).add("sglang/srt/alien/common.py", far)
    changed = changed.edit(MAP, AFFINITY, AFFINITY.replace("utils.common", "utils.gone"))
    found = only(changed.edit(MAP, "    why: pin each", GONE).findings(), "KA121")
    assert f"where {PINNED} has the same name" in found.message
    assert str(found.upstream) == "sglang/srt/utils/common.py:4"


def test_what_the_ranges_leave_out_is_told_at_the_entry_that_names_it(bench: Bench) -> None:
    narrow = MOVED.replace(">=0.5.18", ">=0.5.18,<0.5.19")
    found = [f for f in used(bench).edit(MAP, AFFINITY, narrow).findings() if f.code == "KA121"]
    told = only(found, "KA121")
    assert told.suggestion is not None and "exclusion" not in told.suggestion
    changed = used(bench).edit(MAP, AFFINITY, narrow)
    assert str(told.position) == changed.place(MAP, "sglang.srt.server_args.set_affinity")


def test_an_exclusion_is_believed_where_nothing_like_it_is_there(bench: Bench) -> None:
    gone = used(bench).edit(MAP, AFFINITY, MOVED.replace("set_affinity", "pin_worker"))
    assert not gone.edit(MAP, "    why: pin each", GONE).findings()
    there = used(bench).edit(MAP, "    why: pin each", GONE)
    assert not there.findings()


def test_a_body_that_the_lock_knows_is_told_under_another_name(bench: Bench) -> None:
    before = used(bench).edit(ENGINE, CALL, "pass")
    before = before.edit(ENGINE, "CHOICES, set_affinity", "CHOICES")
    lock = locked(before.edit(COMMON, "return gpu_id", "return gpu_id + 1"))
    changed = before.edit(COMMON, "def set_affinity", "def pin_worker")
    changed = changed.edit(COMMON, "return gpu_id", "return gpu_id + 1")
    found = changed.edit(MAP, "    why: pin each", GONE).findings(lock=lock)
    told = only([f for f in found if f.code.startswith("KA12")], "KA121")
    assert "sglang.srt.utils.common.pin_worker has the body that the lock knows" in told.message


def left_out_with_its_body(bench: Bench) -> tuple[Bench, Lock]:
    """A release that has the body of another release's target, and the lock of that other one."""
    before = used(bench).edit(ENGINE, CALL, "pass")
    before = before.edit(ENGINE, "CHOICES, set_affinity", "CHOICES")
    before = before.edit(COMMON, "return gpu_id", "return gpu_id + 1")
    other = locked(before.version("0.5.18"))
    changed = before.edit(COMMON, "def set_affinity", "def pin_worker")
    return changed.edit(MAP, "    why: pin each", GONE), other


def test_a_row_depends_on_no_other_release(bench: Bench) -> None:
    changed, other = left_out_with_its_body(bench)
    with_other = usage_row(context(changed, other))
    alone = usage_row(context(changed, Lock()))
    assert row_digest(with_other) == row_digest(alone)
    (places,) = with_other["bindings"]["affinity"]["bodies"].values()
    assert places == ["sglang.srt.utils.common.pin_worker sglang/srt/utils/common.py:4"]
    # Dropping or locking the other one leaves the row as it is.
    assert usage_row(context(changed, Lock()), with_other) == with_other
    assert usage_row(context(changed, other), alone) == alone


def test_a_body_that_was_locked_since_is_looked_for_all_the_same(bench: Bench) -> None:
    changed, other = left_out_with_its_body(bench)
    alone = usage_row(context(changed, Lock()))
    for row in (alone, usage_row(context(changed, other))):
        found = changed.findings(lock=other.with_usage("0.5.19", row))
        told = only([f for f in found if f.code == "KA121"], "KA121")
        assert "pin_worker has the body that the lock knows" in told.message
        # Without the other release nobody knows the body any more.
        gone = changed.findings(lock=Lock().with_usage("0.5.19", row))
        assert not [f for f in gone if f.code == "KA121"]


def test_what_a_row_knows_of_a_body_is_not_searched_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed, other = left_out_with_its_body(bench)
    held = other.with_usage("0.5.19", usage_row(context(changed, other)))

    def refused(*_: object) -> None:
        raise AssertionError("the index is asked although the lock holds the answer")

    monkeypatch.setattr(excluded_but_there, "_with_body", refused)
    assert [f for f in changed.findings(lock=held) if f.code == "KA121"]


@pytest.mark.parametrize("strange", [3, {"00": 3}, {"00": ["x"]}, {"00": [None]}])
def test_strange_bodies_in_a_row_are_looked_for_anew(bench: Bench, strange: object) -> None:
    changed, other = left_out_with_its_body(bench)
    row = of_affinity(usage_row(context(changed, other)), bodies=strange)
    found = changed.findings(lock=other.with_usage("0.5.19", row))
    assert [f for f in found if f.code == "KA121"]


def test_a_planned_binding_says_why_it_leaves_out_what_is_there(bench: Bench) -> None:
    narrow = AFFINITY.replace(">=0.5.18", ">=0.5.18,<0.5.19")
    planned = used(bench).edit(MAP, "    why: pin each", "    status: planned\n    why: pin each")
    assert not [f for f in planned.findings() if f.code == "KA121"]
    changed = planned.edit(MAP, AFFINITY, narrow)
    told = only(changed.findings(), "KA121")
    assert f"{PINNED} is there" in told.message
    assert str(told.position) == changed.place(MAP, PINNED)
    assert told.suggestion is not None
    assert told.suggestion.startswith("let its range hold for 0.5.19 too, or say why not: ")
    assert not changed.edit(MAP, "    why: pin each", GONE).findings()
    elsewhere = planned.edit(MAP, AFFINITY, narrow.replace("utils.common", "utils.gone"))
    assert not elsewhere.findings()


def test_an_exclusion_may_be_accepted_for_a_reason(bench: Bench) -> None:
    accepts = "    accepts: [{code: KA121, why: it takes other arguments there}]\n"
    changed = used(bench).edit(MAP, AFFINITY, MOVED)
    changed = changed.edit(MAP, "    why: pin each", accepts + GONE)
    found = only(changed.findings(), "KA121")
    assert "(accepted: it takes other arguments there)" in found.message


# The lock


def locked(bench: Bench) -> Lock:
    """The lock of what the bench binds, without a row of uses."""
    lock, _ = lock_release(bench.resolver(), [PINNED, "sglang.srt.utils.common.CHOICES"])
    return lock


def context(bench: Bench, lock: Lock | None = None) -> Context:
    catalog = bench.catalog()
    facts = bench.resolver()
    document = catalog.platform_map
    assert document is not None
    plans = tuple(make_plan(catalog, facts, p) for p in document.model.device.profiles)
    return Context(catalog, document, facts, plans, lock)


@pytest.fixture
def held(bench: Bench) -> tuple[Bench, Lock]:
    """A bench with findings about uses, and a lock that holds them."""
    changed = used(bench).add(COMMON, '\nBY_NAME = {"numa": set_affinity}\n')
    changed = changed.edit(ENGINE, CALL, "set_affinity(0, 8, 2)")
    lock = locked(changed)
    row = usage_row(context(changed, lock))
    return changed, parse_lock(lock.with_usage("0.5.19", row).text())


def refuse(context: Context) -> tuple[Finding, ...]:
    raise AssertionError("the release is searched although the lock holds what was found")


def test_what_the_lock_holds_is_what_would_be_found(
    held: tuple[Bench, Lock], monkeypatch: pytest.MonkeyPatch
) -> None:
    changed, lock = held
    anew = usage_findings(context(changed))
    assert codes(anew) == ["KA115", "KA118"]
    monkeypatch.setattr(usage, "found", refuse)
    assert usage_findings(context(changed, lock)) == anew
    assert usage_row(context(changed, lock), lock.usage["0.5.19"]) == lock.usage["0.5.19"]


def test_what_is_held_follows_its_binding_in_the_file(
    held: tuple[Bench, Lock], monkeypatch: pytest.MonkeyPatch
) -> None:
    changed, lock = held
    monkeypatch.setattr(usage, "found", refuse)
    before = usage_findings(context(changed, lock))
    moved = changed.edit(MAP, "hooks:\n", "\n\nhooks:\n")
    after = usage_findings(context(moved, lock))
    assert [f.position.line for f in after] == [f.position.line + 2 for f in before]


@pytest.mark.parametrize(
    "change",
    [
        lambda b: b.edit(MAP, "nnodes: 1", "nnodes: 2"),
        lambda b: b.edit(MAP, "- {call: sglang.srt.managers.", "- {call: sglang.srt.other."),
        lambda b: b.add(COMMON, "\nMORE = 1\n"),
        lambda b: b.edit(RECIPE, "style: oot_forward", "style: function"),
    ],
)
def test_whatever_it_depends_on_makes_it_stale(held: tuple[Bench, Lock], change: Any) -> None:
    changed, lock = held
    digest = row_digest(lock.usage["0.5.19"])
    assert usage_digest(context(changed, lock)) == digest
    assert usage_digest(context(change(changed), lock)) != digest


def test_what_says_nothing_of_the_binding_leaves_it_standing(held: tuple[Bench, Lock]) -> None:
    changed, lock = held
    other = changed.edit(MAP, "why: pin each worker to", "why: keep each worker on")
    other = other.edit(RECIPE, 'rows: "<= 8192"', 'rows: "<= 4096"')
    assert usage_digest(context(other, lock)) == row_digest(lock.usage["0.5.19"])


@pytest.mark.parametrize(
    "spoil",
    [
        lambda row: {**row, "digest": "other"},
        lambda row: {"digest": row["digest"]},
        lambda row: {"bindings": row["bindings"]},
        lambda row: of_affinity(row, stated="other"),
        lambda row: of_affinity(row, stated=None),
        lambda row: of_affinity(row, findings=3),
        lambda row: of_affinity(row, findings=[{"code": "KA115"}]),
        lambda row: of_affinity(row, findings=[{**first(row), "code": "KA999"}]),
        lambda row: of_affinity(row, findings=[{**first(row), "upstream": "no line"}]),
        lambda row: {**row, "bindings": {**row["bindings"], "nobody": {"stated": "x"}}},
    ],
)
def test_a_row_that_does_not_fit_is_found_anew(held: tuple[Bench, Lock], spoil: Any) -> None:
    changed, lock = held
    row = spoil(dict(lock.usage["0.5.19"]))
    strange = parse_lock(lock.with_usage("0.5.19", row).text())
    assert codes(usage_findings(context(changed, strange))) == ["KA115", "KA118"]


def of_affinity(row: dict[str, Any], **parts: Any) -> dict[str, Any]:
    bindings = row["bindings"]
    return {**row, "bindings": {**bindings, "affinity": {**bindings["affinity"], **parts}}}


def first(row: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = row["bindings"]["affinity"]["findings"][0]
    return found


def test_a_lock_of_another_time_has_no_such_row(held: tuple[Bench, Lock]) -> None:
    changed, lock = held
    without = replace(lock, usage={})
    assert parse_lock(without.text()).usage == {}
    assert codes(usage_findings(context(changed, without))) == ["KA115", "KA118"]


def test_without_the_release_nothing_is_said_of_its_uses(held: tuple[Bench, Lock]) -> None:
    from kunlun_adapt.upstream import LockFacts

    changed, lock = held
    facts = LockFacts(lock, "0.5.19")
    ours = [f for f in changed.findings(facts=facts, lock=lock) if f.code in usage.CODES_OF_USAGE]
    assert not ours


def test_the_resolver_tells_who_asks_how_far_the_index_is(bench: Bench) -> None:
    said: list[float | None] = []
    facts: Resolver = used(bench).resolver()
    facts.progress = lambda message, fraction: said.append(fraction)
    assert facts.index.modules
    assert said and said[-1] == 1.0

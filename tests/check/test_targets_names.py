"""KA108, KA109, KA112 and KA113: targets that are not quite what their path says."""

from __future__ import annotations

import pytest

from kunlun_adapt.diagnostics import Finding, Severity
from tests.check.bench import MAP, RECIPE, Bench
from tests.check.examples import COMMON
from tests.check.examples_targets import RUNNER, hook
from tests.check.said import codes, only

FREE = "sglang.srt.utils.common.free"
SIZE = ", args: {size: size}"


def about(bench: Bench, code: str) -> list[Finding]:
    return [f for f in bench.findings() if f.code == code]


def usage(bench: Bench) -> list[Finding]:
    """What the part of KA108 that looks through the release says."""
    return [f for f in bench.findings() if f.code == "KA108" and "another name" in f.message]


def test_an_operator_named_by_a_reexport(bench: Bench) -> None:
    changed = bench.edit(RECIPE, "ops.activation.silu_and_mul\n", "ops.silu_and_mul\n")
    found = only(changed.findings(), "KA108")
    assert found.severity is Severity.WARNING
    assert "what gets patched is the definition" in found.message
    assert str(found.upstream) == "sglang/kernels/ops/__init__.py:1"


def test_a_member_of_a_class_that_is_named_by_a_reexport(bench: Bench) -> None:
    changed = bench.add("sglang/srt/here.py", "from sglang.srt.runner import GraphRunner\n")
    how = ", args: {batch: batch, skip: skip}"
    changed = changed.edit(MAP, *hook("around", "sglang.srt.here.GraphRunner.replay", how))
    found = only(changed.findings(), "KA108")
    assert found.suggestion == "name the definition: target: sglang.srt.runner.GraphRunner.replay"


def test_a_value_that_is_set_where_it_is_handed_on(bench: Bench) -> None:
    handed = bench.add("sglang/srt/here.py", "from sglang.srt.utils.common import ENABLED\n")
    handed = handed.edit(MAP, *hook("set", "sglang.srt.here.ENABLED"))
    alone = only([f for f in handed.findings() if f.code == "KA108"], "KA108")
    assert alone.severity is Severity.WARNING
    read = handed.add("sglang/srt/there.py", "from sglang.srt.utils.common import ENABLED\n")
    found = only([f for f in read.findings() if f.code == "KA108"], "KA108")
    assert found.severity is Severity.ERROR
    assert "sglang/srt/there.py:1 imports the definition" in found.message


ALIAS = "def old_free(size):\n    pass\nfree = old_free\n"


def test_a_second_name_is_no_finding_by_itself(bench: Bench) -> None:
    changed = bench.add(COMMON, ALIAS).edit(MAP, *hook("around", FREE, SIZE))
    assert about(changed, "KA108") == []


def test_a_second_name_of_what_is_used_by_its_first(bench: Bench) -> None:
    changed = bench.add(COMMON, ALIAS).edit(MAP, *hook("around", FREE, SIZE))
    changed = changed.add(
        "sglang/srt/here.py",
        "from sglang.srt.utils.common import free, old_free\nfree(1)\nold_free(2)\n",
    )
    found = only(usage(changed), "KA108")
    assert "sglang/srt/here.py:3 uses the other and keeps upstream's" in found.message
    assert found.target == FREE


def test_a_name_that_is_handed_on_and_assigned_under_a_guard_is_a_reexport(bench: Bench) -> None:
    changed = bench.add("sglang/srt/fast.py", "def free(size):\n    pass\n")
    changed = changed.add(
        "sglang/srt/here.py",
        "from sglang.srt.fast import free\nif is_npu():\n    free = 3\n\ndef go():\n    free(1)\n",
    )
    changed = changed.edit(MAP, *hook("around", "sglang.srt.here.free", SIZE))
    found = only(about(changed, "KA108"), "KA108")
    assert "is a re-export of sglang.srt.fast.free" in found.message
    assert str(found.upstream) == "sglang/srt/here.py:1"


BASE = "class Base:\n"
LOAD = "class Base:\n            def load(self, model):\n                return model\n\n"
GRAPH_LOAD = "sglang.srt.runner.GraphRunner.load"


def inherits(bench: Bench) -> Bench:
    loads = bench.edit(RUNNER, BASE, LOAD)
    return loads.edit(MAP, *hook("around", GRAPH_LOAD, ", args: {model: model}"))


def test_an_inherited_member_is_a_warning_where_the_class_is_used(bench: Bench) -> None:
    used = inherits(bench).add(
        "sglang/srt/here.py", "from sglang.srt.runner import GraphRunner\nGraphRunner()\n"
    )
    found = only(used.findings(), "KA109")
    assert found.severity is Severity.WARNING
    assert "and no other class that has it from Base" in found.message


def test_an_inherited_member_of_a_class_that_nothing_is_made_of(bench: Bench) -> None:
    found = only(inherits(bench).findings(), "KA109")
    assert found.severity is Severity.ERROR
    assert "neither a subclass nor a use" in found.message


def test_an_inherited_member_that_is_meant(bench: Bench) -> None:
    meant = inherits(bench).edit(
        MAP, "why: a third one\n",
        'why: a third one\n    accepts: [{code: KA109, why: "only this runner needs it"}]\n',
    )  # fmt: skip
    assert only(meant.findings(), "KA109").severity is Severity.INFO
    before = meant.edit(MAP, "{code: KA109,", '{code: KA109, sglang: "<0.5.19",')
    assert only(before.findings(), "KA109").severity is Severity.ERROR


def test_a_member_of_its_own_is_quiet(bench: Bench) -> None:
    own = bench.edit(RUNNER, BASE, LOAD)
    own = own.edit(MAP, *hook("around", "sglang.srt.runner.Base.load", ", args: {model: model}"))
    assert codes(own.findings()) == []


def test_an_operator_on_an_inherited_method_serves_the_base(bench: Bench) -> None:
    base = bench.add(
        "sglang/srt/layers/fused.py", "\n        class Wide(BaseFusedOp):\n            pass\n"
    )
    changed = base.add(
        "sglang/srt/wide.py",
        "from sglang.srt.layers.fused import BaseFusedOp\nclass Wide(BaseFusedOp): ...\nWide()\n",
    )
    changed = changed.edit(
        RECIPE, "sglang.kernels.ops.activation.silu_and_mul", "sglang.srt.wide.Wide.forward"
    )
    found = only(about(changed, "KA109"), "KA109")
    assert "the operator would serve every class that has it from there" in found.message


@pytest.mark.parametrize(
    ("guard", "profiles", "off"),
    [
        ("_is_hip", "", True),
        ("is_npu() or is_xpu()", "", True),
        ("_is_cuda", "", False),
        ("_is_cuda", "[card]", False),
        ("_is_cuda", "[simulator]", True),
        ("not _is_cuda", "[card]", True),
        ("version > 1", "", False),
        ("_is_hip or version > 1", "", False),
    ],
)
def test_a_guard_that_no_profile_meets(bench: Bench, guard: str, profiles: str, off: bool) -> None:
    changed = bench.add(COMMON, f"if {guard}:\n    def free(size):\n        pass\n")
    changed = changed.edit(MAP, *hook("around", FREE, SIZE))
    if profiles:
        changed = changed.edit(
            MAP, "why: a third one\n", f"why: a third one\n    profiles: {profiles}\n"
        )
    found = about(changed, "KA112")
    assert bool(found) is off
    if found:
        assert f"`{guard}`" in found[0].message or f"`({guard})`" in found[0].message


def test_a_fallback_of_an_import_is_no_guard(bench: Bench) -> None:
    changed = bench.add(
        COMMON, "try:\n    import fast\nexcept ImportError:\n    def free(size):\n        pass\n"
    )
    changed = changed.edit(MAP, *hook("around", FREE, SIZE))
    assert codes(changed.findings()) == []


def test_a_class_around_the_target_that_is_for_another_device(bench: Bench) -> None:
    changed = bench.add(
        COMMON, "if _is_npu:\n    class Pool:\n        def free(self, size):\n            pass\n"
    )
    changed = changed.edit(MAP, *hook("around", "sglang.srt.utils.common.Pool.free", SIZE))
    assert "`_is_npu`" in only(changed.findings(), "KA112").message


def test_an_import_that_is_for_another_device_is_the_place_to_look_at(bench: Bench) -> None:
    changed = bench.add("sglang/srt/fast.py", "def free(size):\n    pass\n")
    changed = changed.add(
        "sglang/srt/here.py",
        "if _is_hip:\n    from sglang.srt.fast import free\n\ndef go():\n    free(1)\n",
    )
    changed = changed.edit(MAP, *hook("around", "sglang.srt.here.free", SIZE))
    found = only(about(changed, "KA112"), "KA112")
    assert str(found.upstream) == "sglang/srt/here.py:2"


VARIANTS = """\
if {first}:
    def free(size):
        pass
else:
    def free({parameters}):
        pass
"""


@pytest.mark.parametrize(
    ("first", "parameters", "differ"),
    [
        ("version > 1", "size, device", True),
        ("version > 1", "size", False),
        ("version > 1", "*args, **kwargs", False),
        ("not _is_hip", "size, device", False),
        ("_is_cuda", "size, device", True),
    ],
)
def test_variants_with_different_signatures(
    bench: Bench, first: str, parameters: str, differ: bool
) -> None:
    changed = bench.add(COMMON, VARIANTS.format(first=first, parameters=parameters))
    changed = changed.edit(MAP, *hook("around", FREE, SIZE))
    assert bool(about(changed, "KA113")) is differ


FAST = "def quick(size):\n    pass\ndef slow(size, device):\n    pass\n"
BY_NAME = "if _is_cuda:\n    free = quick\nelse:\n    free = slow\n"
BESIDE = "if version > 1:\n    free = quick\nelse:\n    def free(size, device):\n        pass\n"
LATER = "from sglang.srt.fast import quick as free\n" + BESIDE.replace("free = quick", "pass")


@pytest.mark.parametrize(
    ("text", "suggests"),
    [
        (FAST + BY_NAME, "bind each under its own path: target: {m}.quick and target: {m}.slow"),
        (FAST + BESIDE, "make sure that the guard of the first holds"),
        (LATER, "make sure that no guard of the others holds"),
    ],
)
def test_what_to_do_about_several_signatures(bench: Bench, text: str, suggests: str) -> None:
    changed = bench.add("sglang/srt/fast.py", FAST).add(COMMON, text)
    changed = changed.edit(MAP, *hook("around", FREE, SIZE))
    found = only(about(changed, "KA113"), "KA113")
    said = suggests.format(m="sglang.srt.utils.common")
    assert found.suggestion is not None and found.suggestion.startswith(said)

# ruff: noqa: E501 -- the YAML lines of the tables stay whole
"""KA101's places: weighed by the parameters that the binding names, and by who has them."""

from __future__ import annotations

import pytest

from kunlun_adapt.diagnostics import Finding
from tests.check.bench import MAP, Bench
from tests.check.examples import AFFINITY, COMMON
from tests.check.said import codes, only

NEW = "sglang.srt.utils.common.set_affinity"
AT = "    at:\n      - {sglang"


def looks_for(bench: Bench, target: str) -> Bench:
    """The bench with the hook on another target, whose old one no other binding is about."""
    return bench.edit(MAP, AFFINITY, AFFINITY.replace(NEW, target))


def defined(bench: Bench, module: str, name: str, parameters: str) -> Bench:
    text = f"def {name}({parameters}):\n    return 1\n"
    return bench.add(f"sglang/srt/{module}.py", text)


def said(bench: Bench, code: str = "KA101") -> Finding:
    return only([f for f in bench.findings() if f.code in ("KA101", "KA102")], code)


def test_of_two_places_of_the_name_the_one_that_takes_the_parameters_is_it(bench: Bench) -> None:
    changed = defined(bench, "stores/keys", "place", "gpu_id, slot, page")
    changed = defined(changed, "stores/values", "place", "gpu_id, tp_size, nnodes=1")
    found = said(looks_for(changed, "sglang.srt.stores.gone.place"), "KA102")
    assert "is now sglang.srt.stores.values.place" in found.message


@pytest.mark.parametrize(
    ("keys", "values"),
    [("gpu_id, tp_size, nnodes", "gpu_id, tp_size, nnodes=1"), ("slot, page", "row, column")],
)
def test_two_places_that_take_the_same_are_no_move(bench: Bench, keys: str, values: str) -> None:
    both = defined(bench, "stores/keys", "place", keys)
    both = defined(both, "stores/pages", "place", values)
    text = said(looks_for(both, "sglang.srt.stores.gone.place")).suggestion or ""
    assert text.startswith("did you mean ") and text.count(".place") == 2


def test_a_place_of_another_name_and_other_parameters_is_only_a_hint(bench: Bench) -> None:
    changed = bench.edit(
        COMMON, "def set_affinity(gpu_id, tp_size, nnodes=1)", "def set_affinities(mask, *, slow)"
    )
    found = said(looks_for(changed, NEW))
    assert found.suggestion == (
        'if nothing took its place, leave it out: `excluded: [{sglang: ">=0.5.19", why: "…"}]`; '
        "what comes nearest by name: sglang.srt.utils.common.set_affinities (42 %)"
    )
    pasted = changed.edit(MAP, AT, '    excluded: [{sglang: ">=0.5.19", why: gone there}]\n' + AT)
    assert codes(pasted.findings()) == []


def test_without_a_place_it_is_to_be_left_out(bench: Bench) -> None:
    found = said(looks_for(bench, "sglang.srt.nowhere.quux"))
    assert found.suggestion == (
        'if nothing took its place, leave it out: `excluded: [{sglang: ">=0.5.19", why: "…"}]`'
    )


def test_a_reference_is_taken_out_of_the_repair(bench: Bench) -> None:
    repair = "    value: [kunlun]\n    repair: [sglang.srt.nowhere.quux]\n"
    found = said(bench.edit(MAP, "    value: [kunlun]\n", repair))
    assert found.suggestion == "if nothing took its place, take it out of `repair`"


def test_a_rename_with_the_same_parameters_comes_first(bench: Bench) -> None:
    changed = bench.edit(COMMON, "def set_affinity(", "def pin_worker(")
    found = said(looks_for(changed, NEW))
    assert found.suggestion == "did you mean sglang.srt.utils.common.pin_worker? (75 %)"
    near = bench.edit(COMMON, "def set_affinity(", "def set_affinities(")
    near = defined(near, "utils/common", "set_affinity_of", "mask")
    text = said(looks_for(near, NEW)).suggestion or ""
    assert text.startswith("did you mean sglang.srt.utils.common.set_affinities ")


def test_a_few_common_parameters_tell_no_rename(bench: Bench) -> None:
    changed = bench.edit(
        COMMON, "def set_affinity(gpu_id, tp_size, nnodes=1)", "def pin_worker(gpu_id, tp_size)"
    )
    changed = changed.edit(MAP, "ignores: {tp_size: $any, nnodes: 1}", "ignores: {tp_size: $any}")
    assert "pin_worker" not in (said(looks_for(changed, NEW)).suggestion or "")


CLASSES = """\
class Greedy:
    def step(self, logits, out):
        return out

class Commit:
    def step(self, weight, bias, scale):
        return weight
"""


def test_the_method_of_another_class_has_another_name(bench: Bench) -> None:
    changed = bench.add("sglang/srt/steps.py", CLASSES)
    found = said(looks_for(changed, "sglang.srt.steps.Sample.step"))
    assert (found.suggestion or "").startswith("if nothing took its place, leave it out: ")
    assert "Greedy.step (" in (found.suggestion or "")


def test_what_another_binding_is_about_weighs_less(bench: Bench) -> None:
    line = "- {target: sglang.srt.utils.common.CHOICES}"
    hook = line.replace("CHOICES", "CHOICE")
    more = f"  - id: more\n    why: a second list\n    type: extend\n    value: [kunlun]\n    at:\n      {hook}\n"
    both = said(bench.edit(MAP, "  - id: choices\n", f"{more}  - id: choices\n"))
    alone = said(bench.edit(MAP, line, hook))
    assert alone.suggestion == "did you mean sglang.srt.utils.common.CHOICES? (92 %)"
    assert "CHOICES (69 %)" in (both.suggestion or "")

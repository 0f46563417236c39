# ruff: noqa: E501 -- the YAML lines of the tables stay whole
"""KA401: two bindings on one definition."""

from __future__ import annotations

from kunlun_adapt.diagnostics import Severity
from tests.check.all_examples import EXAMPLES
from tests.check.bench import MAP, RECIPE, Bench
from tests.check.examples import COMMON
from tests.check.said import codes, only

SECOND = """\
hooks:
  - id: second
    why: a second one
    type: {type}
    impl: "our_impls:set_affinity"
    process: [{process}]
    at:
      - {{target: {target}{how}}}
"""
HOW = ", args: {gpu_id: gpu_id}, ignores: {tp_size: $any, nnodes: 1}"


def second(bench: Bench, type: str, target: str, how: str = "", process: str = "main") -> Bench:
    text = SECOND.format(type=type, target=target, how=how, process=process)
    return bench.edit(MAP, "hooks:\n", text)


def test_two_replacements_and_who_wins(bench: Bench) -> None:
    changed = second(bench, "replace", "sglang.srt.utils.common.set_affinity", HOW)
    found = only(changed.findings(), "KA401")
    assert found.binding == "affinity" and "the last one wins" in found.message
    assert str(found.upstream) == f"{COMMON}:4"


def test_a_wrapper_and_a_replacement(bench: Bench) -> None:
    changed = second(bench, "around", "sglang.srt.utils.common.set_affinity", HOW)
    assert only(changed.findings(), "KA403").severity is Severity.WARNING


def test_a_decision_settles_it(bench: Bench) -> None:
    changed = EXAMPLES["KA405"].change(bench)
    for between in ("[silu, silu_and_mul]", "[silu_and_mul/silu_and_mul, silu]"):
        decided = changed.edit(
            MAP, "hooks:\n",
            f'conflicts:\n  - {{between: {between}, decision: both, recorded: "2026-01-01"}}\nhooks:\n',
        )  # fmt: skip
        assert codes(decided.findings()) == []


def test_processes_apart_do_not_meet(bench: Bench) -> None:
    changed = second(bench, "replace", "sglang.srt.utils.common.set_affinity", HOW, "scheduler")
    apart = changed.edit(
        MAP, "    type: replace\n    impl: \"our_impls:set_affinity\"\n    at:",
        "    type: replace\n    process: [detokenizer]\n    impl: \"our_impls:set_affinity\"\n    at:",
    )  # fmt: skip
    # The map of the bench spells no detokenizer.
    assert codes(apart.findings()) == ["KA407"]


def test_profiles_apart_do_not_meet(bench: Bench) -> None:
    changed = second(bench, "replace", "sglang.srt.utils.common.set_affinity", HOW)
    apart = changed.edit(MAP, "    process: [main]", "    profiles: [card]")
    apart = apart.edit(MAP, "  - id: affinity", "  - id: affinity\n    profiles: [simulator]")
    assert codes(apart.findings()) == []


def test_two_extensions_add_up(bench: Bench) -> None:
    changed = second(bench, "extend", "sglang.srt.utils.common.CHOICES")
    assert codes(changed.findings()) == []


def test_a_value_that_is_set_and_extended(bench: Bench) -> None:
    changed = second(bench, "set", "sglang.srt.utils.common.CHOICES")
    only(changed.findings(), "KA401")


def test_two_operators_on_one_class(bench: Bench) -> None:
    other = bench.workspace[RECIPE].replace("name: silu_and_mul", "name: other")
    other = other.replace("target: sglang.kernels.ops.activation.silu_and_mul",
                          "target: sglang.kernels.ops.activation.gelu_and_mul")  # fmt: skip
    findings = bench.add("operator_recipes/other.yaml", other).findings()
    found = only([f for f in findings if f.code == "KA401"], "KA401")
    assert found.target == "sglang.srt.layers.activation.SiluAndMul"


def test_two_keys_under_one_method_need_an_argument(bench: Bench) -> None:
    changed = bench.edit(MAP, "get_kv_pool_cls, argument: {kind: $key}}", "get_kv_pool_cls}")
    found = only(changed.findings(), "KA401")
    assert found.binding == "factory/kv_pool.mla"
    assert "kv_pool.mha and kv_pool.mla" in found.message

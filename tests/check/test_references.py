# ruff: noqa: E501 -- the YAML lines of the tables stay whole
"""KA005 to KA010: what the workspace says about itself."""

from __future__ import annotations

import pytest

from kunlun_adapt.check.releases import known_releases, spans
from tests.check.bench import MAP, RECIPE, Bench
from tests.check.said import codes, only

NAMES = [
    (RECIPE, "mutates: [out]", "mutates: [oot]", "oot]"),
    (RECIPE, "{x: input, out: out}", "{x: input, oot: out, out: out}", "oot: out"),
    (RECIPE, "prepare: {x: contiguous}", "prepare: {z: contiguous}", "z: contiguous"),
    (RECIPE, "prepare: {x: contiguous}", "prepare: {x: {do: cast, to: float17}}", "float17}"),
    (RECIPE, "  x: [[1, 256]", "  xs: [[1, 256]", "xs: [[1"),
    (RECIPE, "  float32: {", "  float33: {", "float33: {"),
    (RECIPE, "derive:", "reads: {mode: batch.mode}\nderive:", "batch.mode"),
    (RECIPE, "capture: safe", "capture: safe\nserves: [kv_pool.dsa]", "kv_pool.dsa]"),
    (MAP, "hooks:\n", "served: {kv_pool.dsa: {simulator: true}}\nhooks:\n", "kv_pool.dsa: {"),
    (MAP, "  process.sched", "  kv_pol:\n    - {method: m}\n  process.sched", "kv_pol:"),
    (
        MAP,
        "hooks:\n",
        "landing_points:\n  - {feature: f, lands_in: hook, bindings: [afinity], why: w w}\nhooks:\n",
        "afinity]",
    ),
    (
        MAP,
        "hooks:\n",
        'conflicts:\n  - {between: [choices, gone], decision: d, recorded: "2026-01-01"}\nhooks:\n',
        "gone]",
    ),
    (
        MAP,
        "- {target: sglang.srt.utils.common.CHOICES}",
        "- {target: flash.CHOICES, provided_by: flash}",
        "flash}",
    ),
]


@pytest.mark.parametrize(("file", "old", "new", "needle"), NAMES)
def test_a_name_that_points_to_nothing(
    bench: Bench, file: str, old: str, new: str, needle: str
) -> None:
    changed = bench.edit(file, old, new)
    found = [f for f in changed.findings() if f.code == "KA005"]
    assert [str(f.position) for f in found] == [changed.place(file, needle)]


def test_names_that_point_to_something_are_quiet(bench: Bench) -> None:
    changed = bench.edit(
        MAP,
        "hooks:\n",
        """\
served:
  kv_pool.mha: {simulator: true}
  methods.get_device_total_memory: {simulator: true}
landing_points:
  - {feature: f, lands_in: hook, bindings: [affinity, silu_and_mul, factory/kv_pool.mha], why: a b}
  - {feature: g, lands_in: factory, bindings: [kv_pool.mla, silu_and_mul/SiluAndMul], why: a b}
conflicts:
  - {between: [choices, affinity], decision: none, recorded: "2026-01-01"}
hooks:
""",
    )
    changed = changed.edit(RECIPE, "capture: safe", "capture: safe\nserves: [kv_pool.mha, kv_pool]")
    changed = changed.edit(
        MAP, "  process.sched", "  accessor:\n    - {call: sglang.srt}\n  process.sched"
    )
    assert codes(changed.findings()) == []


def test_the_names_of_adaptation_recipes(bench: Bench) -> None:
    text = """\
        apiVersion: kunlun-adapt/v1
        kind: AdaptationRecipe
        name: llama
        why: the first model that is served
        operators: [silu_and_mul, silu]
        bindings: [affinity, afinity]
        """
    findings = bench.add("recipes/llama.yaml", text).findings()
    assert [(f.code, f.position.line, f.suggestion) for f in findings] == [
        ("KA005", 5, "did you mean silu_and_mul?"),
        ("KA005", 6, "did you mean affinity?"),
    ]


def test_ranges_that_meet_do_not_overlap(bench: Bench) -> None:
    assert "<0.5.18" in bench.workspace[MAP] and ">=0.5.18" in bench.workspace[MAP]
    assert codes(bench.findings()) == []


def test_overlaps_are_found_in_every_group(bench: Bench) -> None:
    changed = bench.edit(MAP, '- {sglang: ">=0.5.18", field', '- {sglang: ">=0.5.17", field')
    found = only([f for f in changed.findings() if f.code == "KA007"], "KA007")
    assert str(found.position) == changed.place(MAP, '">=0.5.17", field')
    changed = bench.edit(
        RECIPE,
        "  - target: sglang.srt.layers.activation.SiluAndMul\n",
        "  - {target: a.silu_and_mul, sglang: '<0.5.18', style: function, args: {x: x}}\n"
        "  - target: sglang.srt.layers.activation.SiluAndMul\n",
    )
    found = only([f for f in changed.findings() if f.code == "KA007"], "KA007")
    assert found.binding == "silu_and_mul/silu_and_mul"
    assert "0.5.17 to 0.5.17.post3" in found.message


def test_two_places_of_one_name_need_an_id(bench: Bench) -> None:
    changed = bench.edit(
        RECIPE,
        "  - target: sglang.srt.layers.activation.SiluAndMul\n",
        "  - {target: sglang.kernels.ops.silu_and_mul, style: function, args: {x: input, out: out}}\n"
        "  - target: sglang.srt.layers.activation.SiluAndMul\n",
    )
    found = only(changed.findings(), "KA007")
    assert (found.suggestion or "").startswith(
        "if these are two places, give one of them an `id` of"
    )
    named = changed.edit(
        RECIPE,
        "silu_and_mul, style: function, args",
        "silu_and_mul, style: function, id: package, args",
    )
    assert codes(named.findings()) == ["KA108", "KA401"]


def test_a_gap_with_a_reason_is_quiet(bench: Bench) -> None:
    changed = bench.edit(MAP, 'sglang: ">=0.5.18", target', 'sglang: ">=0.5.20", target')
    assert codes(changed.findings()) == ["KA008"]
    reason = '    excluded: [{sglang: ">=0.5.18,<0.5.20", why: nobody pins workers there}]\n    at:\n      - {sglang'
    excluded = changed.edit(MAP, "    at:\n      - {sglang", reason)
    report = excluded.report()
    assert codes(report.findings) == []
    assert report.excluded == 1


def test_a_gap_without_a_target_asks_for_the_reason(bench: Bench) -> None:
    changed = bench.edit(
        MAP, 'sglang: ">=0.5.18", target: sglang.srt.utils.common.set_affinity',
        'sglang: ">=0.5.20", target: sglang.srt.utils.common.pin',
    )  # fmt: skip
    found = only(changed.findings(), "KA008")
    assert found.suggestion == 'say why: `excluded: [{sglang: ">=0.5.18,<0.5.20", why: "…"}]`'


@pytest.mark.parametrize("why", ["…", "'...'", "TODO", "tbd.", "'-'", "'  '"])
def test_a_reason_that_says_nothing(bench: Bench, why: str) -> None:
    changed = bench.edit(MAP, "why: no recurrent model is bound", f"why: {why}")
    found = only(changed.findings(), "KA010")
    assert str(found.position) == changed.place(MAP, f"why: {why}", 5)


def test_known_releases_lie_in_the_claim() -> None:
    releases = known_releases(">=0.5.17,<0.5.19", ["0.5.18.post9", "0.5.20"])
    assert releases[0] == "0.5.17" and releases[-1] == "0.5.18.post9"
    assert "0.5.17.post1" in releases and "0.5.20" not in releases
    assert spans(releases) == "0.5.17 to 0.5.18.post9"
    assert spans(["0.5.19"]) == "0.5.19"
    assert known_releases("===0.5.19") == ("0.5.19",)


def test_an_operator_that_could_not_be_read_is_not_missing(bench: Bench) -> None:
    recipe = "recipes/model.yaml"
    changed = bench.add(
        recipe,
        """\
        apiVersion: kunlun-adapt/v1
        kind: AdaptationRecipe
        name: model
        why: a b
        operators: [silu_and_mul]
        bindings: [silu_and_mul/SiluAndMul]
        """,
    )
    assert codes(changed.findings()) == []
    broken = changed.edit(RECIPE, "capture: safe", "capture: @safe")
    assert codes(broken.findings()) == ["KA001"]
    unfit = changed.edit(RECIPE, "capture: safe", "capture: maybe")
    assert codes(unfit.findings()) == ["KA002"]
    gone = changed.edit(recipe, "operators: [silu_and_mul]", "operators: [other]")
    assert codes(gone.findings()) == ["KA005"]
    leaf = changed.edit(recipe, "silu_and_mul/SiluAndMul", "silu_and_mul/nothing")
    assert codes(leaf.findings()) == ["KA005"]


@pytest.mark.parametrize(
    ("name", "suggestion"),
    [
        ("methods.get_device_uuid", "give it: `methods: {get_device_uuid: …}`, or remove it here"),
        ("kv_pool.dsa", "give it: `factories: {kv_pool: {dsa: …}}`, or remove it here"),
        ("methods.get_device_total_memry", "did you mean methods.get_device_total_memory?"),
    ],
)
def test_a_key_that_is_not_given_is_to_be_given(bench: Bench, name: str, suggestion: str) -> None:
    changed = bench.edit(
        MAP,
        "hooks:\n",
        "landing_points:\n"
        f"  - {{feature: f, lands_in: hook, bindings: [{name}], why: a b}}\nhooks:\n",
    )
    found = only(changed.findings(), "KA005")
    assert found.suggestion == suggestion


def test_accepted_codes_are_codes(bench: Bench) -> None:
    accepts = "    accepts: [{code: KA998, why: looked at}]\n    value: [kunlun]\n"
    found = only(bench.edit(MAP, "    value: [kunlun]\n", accepts).findings(), "KA005")
    assert (found.message, found.binding) == ("accepts KA998, which no rule has", "choices")
    known = accepts.replace("KA998", "KA118")
    unused = bench.edit(MAP, "    value: [kunlun]\n", known)
    assert codes(unused.findings()) == ["KA012"]  # a code that there is, and nothing gives
    whole = bench.add(MAP, "accepts: [{code: KA998, why: looked at}]\n")
    assert only(whole.findings(), "KA005").binding is None


def test_a_conflict_has_two_sides(bench: Bench) -> None:
    one = 'conflicts: [{between: [affinity, affinity], decision: none, recorded: "2026-11-30"}]\n'
    found = only(bench.add(MAP, one).findings(), "KA005")
    assert found.message == "a conflict needs two different sides"

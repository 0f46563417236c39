# ruff: noqa: E501 -- the YAML lines of the tables stay whole
"""KA303 to KA306: operators and their tiers."""

from __future__ import annotations

import pytest

from tests.check.bench import MAP, RECIPE, Bench
from tests.check.said import codes, only

WHEN = 'rows: "<= 8192"'
GOLDEN = "    fallback: true"


def test_a_gap_names_an_example_and_its_share(bench: Bench) -> None:
    changed = bench.edit(RECIPE, GOLDEN, f"{GOLDEN}\n    when: {{x.dtype: float32}}")
    found = only(changed.findings(), "KA303")
    assert "x.dtype = bfloat16, rows = 8193" in found.message
    assert str(found.position) == changed.place(RECIPE, "kernels:")
    line = changed.place(RECIPE, "- name: golden").split(":")[1]
    assert found.suggestion == f"widen `when` of the golden tier, line {line}"


def test_without_a_golden_tier_both_are_said(bench: Bench) -> None:
    changed = bench.edit(RECIPE, "  - name: golden\n    fallback: true\n", "")
    findings = changed.findings()
    assert codes(findings) == ["KA303", "KA306"]
    assert "`- {name: golden, fallback: true}`" in (findings[0].suggestion or "")


def test_a_golden_that_is_no_fallback(bench: Bench) -> None:
    found = only(bench.edit(RECIPE, f"\n{GOLDEN}", "").findings(), "KA306")
    assert found.suggestion == "add `fallback: true`"


def test_a_tier_behind_one_that_takes_all(bench: Bench) -> None:
    changed = bench.edit(
        RECIPE,
        "  - name: swiglu",
        "  - {name: all, impl: 'our_impls:silu_golden'}\n  - name: swiglu",
    )
    findings = changed.findings()
    assert codes(findings) == ["KA305", "KA305"]
    assert "all take every call before it" in findings[0].message
    assert str(findings[0].position) == changed.place(RECIPE, "swiglu\n    impl")


FAULTY = [
    # What is read, and where the finding stands: at the key.
    (WHEN, "row: 1", "row: 1", 0, "no parameter or derived name"),
    (WHEN, "x.dtyp: 1", "x.dtyp: 1", 0, "cannot be read"),
    (WHEN, "x.shpe[0]: 1", "x.shpe[0]: 1", 0, "cannot be read"),
    (WHEN, "x.shape: 1", "x.shape: 1", 0, "needs an index"),
    (WHEN, "x.shape[2]: 1", "x.shape[2]: 1", 0, "has 2 dimensions"),
    (WHEN, "out.ndim: 2", "out.ndim: 2", 0, "may be None"),
    (WHEN, "rows.dtype: float16", "rows.dtype: float16", 0, "has no dtype"),
    (WHEN, "server.page_size: 16", "server.page_size: 16", 0, "nothing says how sglang 0.5.19 hands out"),
    (WHEN, "server.page.size: 16", "server.page.size: 16", 0, "a server argument has no parts"),
    (WHEN, "server.import: 16", "server.import: 16", 0, "a word of Python"),
    (WHEN, "env.A.B: '1'", "env.A.B: '1'", 0, "an environment variable has no parts"),
    # What is asked, and where the finding stands: at the value.
    (WHEN, "rows: '<< 3'", "rows: '<< 3'", 6, "cannot be read"),
    (WHEN, "rows: '9..3'", "rows: '9..3'", 6, "is empty"),
    (WHEN, "x.ndim: two", "x.ndim: two", 8, "a whole number"),
    (WHEN, "x.ndim: present", "x.ndim: present", 8, "a whole number"),
    (WHEN, "op.kunlun_ops.swiglu: 1", "op.kunlun_ops.swiglu: 1", 22, "present or none"),
    ("[float16, bfloat16]", "[float16, bf16]", "[float16, bf16]", 0, "'bf16' is not a dtype"),
    # Declarations and formulas.
    ('x: "Tensor[rows, 2*d]"', 'x: "Tensr[rows]"', '"Tensr[rows]"', 0, "is not a declaration"),
    ('rows: "x.shape[0]"', 'rows: "x.shape[0"', '"x.shape[0"', 0, "is not a formula"),
    ('rows: "x.shape[0]"', 'rows: "y.shape[0]"', '"y.shape[0]"', 0, "no parameter or derived name"),
    ('rows: "x.shape[0]"', 'rows: "out.shape[0]"', '"out.shape[0]"', 0, "may be None"),
    ('rows: "x.shape[0]"', 'rows: "x.shape[7]"', '"x.shape[7]"', 0, "has 2 dimensions"),
    ('rows: "x.shape[0]"', 'rows: "both + 1"\n  both: "x.shape[0]"', '"both + 1"', 0, "both is no parameter"),
    ('rows: "x.shape[0]"', 'rows: "x.shape[0]"\n  out: "x.shape[1]"', 'out: "x.shape[1]"', 0, "also a parameter"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "needle", "skip", "says"), FAULTY)
def test_what_conditions_cannot_read_or_say(
    bench: Bench, old: str, new: str, needle: str, skip: int, says: str
) -> None:
    changed = bench.edit(RECIPE, old, new)
    found = only(changed.findings(), "KA304")
    assert says in found.message
    assert str(found.position) == changed.place(RECIPE, needle, skip)


READABLE = [
    "out: present\n      out.ndim: 2",
    "x.shape[-1]: '% 64 == 0'",
    "env.KUNLUN_FAST: '1'",
    "op.kunlun_ops.swiglu: present",
    "x.contiguous: true",
    "rows: power_of_two",
    "server.page_size: [64, 128]",
    "server.page_size: '<= 64'",
    "server.device: cpu",
    "server.page_size: present",
]

SERVER = """\
interface:
  server_args_accessor: [{call: sglang.srt.runtime_context.get_server_args}]
"""


@pytest.mark.parametrize("when", READABLE)
def test_what_conditions_can_read(bench: Bench, when: str) -> None:
    known = bench.edit(MAP, "interface:\n", SERVER)
    known = known.add("sglang/srt/runtime_context.py", "def get_server_args():\n    pass\n")
    assert codes(known.edit(RECIPE, WHEN, when).findings()) == []


def test_a_server_argument_that_the_release_does_not_have(bench: Bench) -> None:
    changed = bench.edit(RECIPE, WHEN, "server.page_siz: 64").edit(MAP, "interface:\n", SERVER)
    changed = changed.add("sglang/srt/runtime_context.py", "def get_server_args():\n    pass\n")
    changed = changed.add("sglang/srt/server_args.py", f"class ServerArgs:\n{FIELDS}")
    found = only(changed.findings(), "KA304")
    assert str(found.position) == changed.place(RECIPE, "server.page_siz")
    assert found.suggestion == "did you mean page_size?"


def test_a_planned_operator_may_read_what_nothing_hands_out_yet(bench: Bench) -> None:
    changed = bench.edit(RECIPE, WHEN, "server.page_size: 64")
    changed = changed.edit(RECIPE, "capture: safe", "capture: safe\nstatus: planned")
    assert codes(changed.findings()) == ["KA313"]


VALUES = [
    (WHEN, "x: 3", "x: 3", 3),
    (WHEN, "x: '<= 3'", "x: '<= 3'", 3),
    (WHEN, "x: [1, 2]", "x: [1, 2]", 3),
    (WHEN, "x.item: 3", "x.item", 0),
    (WHEN, "x.item(): 3", "x.item()", 0),
    (WHEN, "x.max: 3", "x.max: 3", 0),
    (WHEN, "x.data_ptr: '% 16 == 0'", "x.data_ptr", 0),
    (WHEN, "x[0]: 3", "x[0]", 0),
    ('rows: "x.shape[0]"', 'rows: "x.sum() + 1"', '"x.sum() + 1"', 0),
    ('rows: "x.shape[0]"', 'rows: "x + 1"', '"x + 1"', 0),
    ('rows: "x.shape[0]"', 'rows: "x.shape[0] * x[0]"', '"x.shape[0] * x[0]"', 0),
    ('rows: "x.shape[0]"', 'rows: "int(x)"', '"int(x)"', 0),
    ('rows: "x.shape[0]"', 'rows: "max(x.shape[0], x.max())"', '"max(x.shape[0], x.max())"', 0),
    ("derive:\n", "reads: {most: x.max}\nderive:\n", "x.max}", 0),
]


@pytest.mark.parametrize(("old", "new", "needle", "skip"), VALUES)
def test_what_a_tensor_holds_is_out_of_reach(
    bench: Bench, old: str, new: str, needle: str, skip: int
) -> None:
    changed = bench.edit(RECIPE, old, new)
    found = only((f for f in changed.findings() if f.code != "KA304"), "KA311")
    assert "asks for what the tensor x holds" in found.message
    assert str(found.position) == changed.place(RECIPE, needle, skip)


@pytest.mark.parametrize("when", ["x: present", "out: none", "out: null", "rows: 3", "x.ndim: 2"])
def test_what_the_host_knows_is_no_value(bench: Bench, when: str) -> None:
    assert codes(bench.edit(RECIPE, WHEN, when).findings()) == []


def test_an_attribute_of_an_object_is_no_tensor_value(bench: Bench) -> None:
    changed = bench.edit(RECIPE, "params:\n", 'params:\n  batch: "object"\n')
    changed = changed.edit(RECIPE, "derive:\n", "reads: {mode: batch.data}\nderive:\n")
    assert "KA311" not in codes(changed.edit(RECIPE, WHEN, "mode: decode").findings())


def test_a_planned_operator_needs_no_golden(bench: Bench) -> None:
    changed = bench.edit(RECIPE, 'golden: "our_impls:silu_golden"', "status: planned")
    assert codes(changed.findings()) == ["KA313"]


def tiers(*whens: str) -> str:
    """A recipe's tiers with these conditions; the text of the base's are in their place."""
    return "".join(
        f"  - {{name: t{i}, impl: 'our_impls:silu_golden', when: {{{when}}}}}\n"
        for i, when in enumerate(whens)
    )


@pytest.mark.parametrize(
    ("whens", "crossed"),
    [
        (("rows: '<= 8'", "rows: '>= 8'"), "rows = 8"),
        (("rows: '1..64'", "rows: '32..128'"), "rows = 32"),
        (("x.dtype: [float16, bfloat16]", "x.dtype: [bfloat16, float32]"), "x.dtype = bfloat16"),
        # The lower one is wider, or narrower in something that only it reads.
        (("rows: '<= 8'", "rows: '<= 64'"), None),
        (("rows: '<= 8', x.dtype: float16", "rows: '<= 64'"), None),
        (("x.dtype: float16", "rows: '<= 64'"), None),
        # They meet nowhere.
        (("rows: '< 8'", "rows: '>= 8'"), None),
        (("rows: '<= 8', x.dtype: float16", "rows: '>= 8', x.dtype: float32"), None),
        (("rows: '<= 8', out: none", "rows: '>= 8', out: present"), None),
        (("rows: '<= 8', out: none", "rows: '>= 8', out.ndim: 2"), None),
        (("rows: '<= 8', out: none", "rows: '>= 8', x.ndim: 2"), "rows = 8"),
        # No call reaches the lower one.
        (("rows: '<= 8'", "rows: '> 8'", "rows: '4..16'"), None),
    ],
)
def test_ranges_that_cross(bench: Bench, whens: tuple[str, ...], crossed: str | None) -> None:
    changed = bench.edit(RECIPE, "  - name: golden\n", f"{tiers(*whens)}  - name: golden\n")
    changed = changed.edit(RECIPE, WHEN, "x.ndim: 3")
    found = [f.message for f in changed.findings() if f.code == "KA310"]
    assert len(found) == (crossed is not None)
    assert all(f"both take {crossed};" in message for message in found)


def test_a_fallback_that_begins_inside_the_tier_above_is_no_overlap(bench: Bench) -> None:
    changed = bench.edit(RECIPE, GOLDEN, f"{GOLDEN}\n    when: {{rows: '>= 8192'}}")
    assert "KA310" not in codes(changed.findings())


LAYOUT = "    fixed: {turn"


@pytest.mark.parametrize(
    ("upper", "fallback", "said"),
    [
        ("weights: packed", "", True),
        ("weights: packed", "weights: packed", False),
        ("weights: packed", "weights: plain", True),
        ("", "weights: plain", True),
        ("", "", False),
    ],
)
def test_the_layout_of_a_fallback(bench: Bench, upper: str, fallback: str, said: bool) -> None:
    changed = bench.edit(RECIPE, LAYOUT, f"    {upper}\n{LAYOUT}" if upper else LAYOUT)
    changed = changed.edit(RECIPE, GOLDEN, f"{GOLDEN}\n    {fallback}" if fallback else GOLDEN)
    assert codes(changed.findings()) == (["KA312"] if said else [])


def test_a_setting_may_decide_between_two_layouts(bench: Bench) -> None:
    changed = bench.edit(RECIPE, LAYOUT, f"    weights: packed\n{LAYOUT}")
    changed = changed.edit(RECIPE, WHEN, f"{WHEN}\n      env.PACKED: '1'")
    assert "KA312" in codes(changed.findings())
    apart = changed.edit(RECIPE, GOLDEN, f"{GOLDEN}\n    when: {{env.PACKED: none}}")
    assert "KA312" not in codes(apart.findings())


def test_a_fallback_that_no_call_reaches_takes_no_weights(bench: Bench) -> None:
    changed = bench.edit(RECIPE, LAYOUT, f"    weights: packed\n{LAYOUT}")
    changed = changed.edit(RECIPE, WHEN, "x.ndim: 2").edit(
        RECIPE, "[float16, bfloat16]", "[float16, bfloat16, float32]"
    )
    assert codes(changed.findings()) == ["KA305"]


def test_each_fault_of_an_operator_is_said(bench: Bench) -> None:
    changed = bench.edit(RECIPE, WHEN, "row: 1\n      x.dtyp: 1")
    changed = changed.edit(
        RECIPE,
        "precision:",
        "failures:\n  - {id: nan, when: {y.dtype: float16}, symptom: s, avoid: a}\nprecision:",
    )
    assert codes(changed.findings()) == ["KA304", "KA304", "KA304"]


def test_conditions_of_server_arguments(bench: Bench) -> None:
    text = """\
server_args:
  - {arg: page_size, default: 128, when: {x.dtype: float16, backend: ">> 3", device: cpu}, why: a b}
interface:
  server_args: [{method: supports_mamba}]
"""
    changed = bench.edit(MAP, "interface:\n", text)
    changed = changed.edit(MAP, "{member: supports_mamba,", "{member: get_device_uuid,")
    findings = changed.findings()
    assert codes(findings) == ["KA304", "KA304"]
    assert {str(f.position) for f in findings} == {
        changed.place(MAP, "x.dtype: float16"),
        changed.place(MAP, '">> 3"'),
    }


@pytest.mark.parametrize(
    ("subject", "meant"), [("x.dtyp", "x.dtype"), ("x.shpe[0]", "x.shape[0]"), ("y.dtyp", None)]
)
def test_a_misspelt_property_keeps_the_parameter(
    bench: Bench, subject: str, meant: str | None
) -> None:
    found = only(bench.edit(RECIPE, WHEN, f"{subject}: 1").findings(), "KA304")
    assert found.suggestion == (f"did you mean {meant}?" if meant else None)


@pytest.mark.parametrize("name", ["served", "env", "kernel_x", "float16"])
def test_a_reserved_name_is_said_once_where_it_is_declared(bench: Bench, name: str) -> None:
    changed = bench.edit(RECIPE, "params:\n", f'params:\n  {name}: "int"\n')
    changed = changed.edit(RECIPE, WHEN, f"{name}: 1\n      x.ndim: 2")
    found = [f for f in changed.findings() if f.code == "KA304"]
    assert [str(f.position) for f in found] == [changed.place(RECIPE, f'{name}: "int"')]
    derived = bench.edit(RECIPE, "derive:\n", f'derive:\n  {name}: "x.shape[1]"\n')
    found = [f for f in derived.findings() if f.code == "KA304"]
    assert [str(f.position) for f in found] == [derived.place(RECIPE, f'{name}: "x.shape[1]"')]


def test_a_read_that_reads_no_attribute(bench: Bench) -> None:
    changed = bench.edit(RECIPE, "derive:\n", "reads: {mode: x.mode}\nderive:\n")
    found = only(changed.findings(), "KA304")
    assert str(found.position) == changed.place(RECIPE, "x.mode")


def test_a_gap_spells_values_as_the_document_would(bench: Bench) -> None:
    changed = bench.edit(RECIPE, GOLDEN, f"{GOLDEN}\n    when: {{x.contiguous: false}}")
    changed = changed.edit(RECIPE, WHEN, "x.contiguous: false")
    assert "x.contiguous = true" in only(changed.findings()[:1], "KA303").message


def test_a_sampled_operator_is_not_called_unreachable(bench: Bench) -> None:
    many = "\n      ".join(f"env.KUNLUN_{i}: present" for i in range(17))
    found = only(bench.edit(RECIPE, WHEN, f"rows: '< 0'\n      {many}").findings(), "KA308")
    assert found.severity.value == "info"


def test_vendor_ops_are_known_by_their_contracts(bench: Bench) -> None:
    changed = bench.edit(RECIPE, WHEN, "op.kunlun_ops.fooo: present")
    found = only(changed.findings(), "KA307")
    assert str(found.position) == changed.place(RECIPE, "op.kunlun_ops.fooo")
    assert found.suggestion == "add kunlun_ops.fooo to the simulator's contracts"
    assert codes(bench.edit(RECIPE, WHEN, "op.kunlun_ops.swiglu: present").findings()) == []


SERVER_ARGS = """\
server_args:
  - {arg: page_siz, default: 128, when: {devic: cpu, device: cpu}, why: a b}
  - {arg: gone, default: 128, sglang: "<0.5.19", why: a b}
interface:
  server_args: [{method: supports_mamba}]
"""
FIELDS = "    model_path: str\n    page_size: int = 1\n    device: str = ''\n"


def test_server_arguments_are_those_of_the_release(bench: Bench) -> None:
    changed = bench.edit(MAP, "interface:\n", SERVER_ARGS)
    changed = changed.edit(MAP, "{member: supports_mamba,", "{member: get_device_uuid,")
    upstream = "sglang/srt/server_args.py"
    known = changed.add(upstream, f"class ServerArgs:\n{FIELDS}")
    findings = {f.code: f for f in known.findings()}
    assert sorted(findings) == ["KA209", "KA304"]
    assert str(findings["KA209"].position) == changed.place(MAP, "page_siz")
    assert findings["KA209"].suggestion == "did you mean page_size?"
    assert str(findings["KA304"].position) == changed.place(MAP, "devic: cpu")
    assert findings["KA304"].suggestion == "did you mean device?"
    # Where the fields are put together elsewhere, nothing is said.
    assert (
        codes(changed.add(upstream, "class ServerArgs:\n    def f(self): pass\n").findings()) == []
    )
    assert codes(changed.findings()) == []

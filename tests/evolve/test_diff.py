# ruff: noqa: E501 -- texts of releases stay whole
"""What the Feature Diff sees of a change in upstream, and how grave it takes it to be."""

from __future__ import annotations

from pathlib import Path

import pytest

from kunlun_adapt.evolve.diff import Risk
from kunlun_adapt.evolve.diff.code import MOST, TOO_LONG, code_diff
from kunlun_adapt.upstream import Location
from tests.check.bench import MAP, Bench
from tests.evolve.diffs import NEW, OLD, Pair, change, fact, item

COMMON = "sglang/srt/utils/common.py"
KERNELS = "sglang/kernels/ops/activation.py"
SCHEDULER = "call: sglang.srt.managers.scheduler.run_scheduler_process"
INTERFACE = "sglang/srt/platforms/interface.py"
ARGS = "sglang/srt/server_args.py"
SET = "def set_affinity(gpu_id, tp_size, nnodes=1):\n            return gpu_id\n"


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    return Pair.of(Bench(tmp_path))


def test_equal_releases_have_no_changes(pair: Pair) -> None:
    diff = pair.diff()
    assert diff.changes == () and diff.open_items == diff.checklist
    assert (diff.old, diff.new) == (OLD, NEW)
    assert diff.compared["bound symbols"] >= 5 and diff.compared["server args"] == 4


@pytest.mark.parametrize(
    ("old", "new", "aspect", "text"),
    [
        ("tp_size, nnodes=1)", "tp_size, nnodes=2)", "signature", "nnodes=2, was 1"),
        ("tp_size, nnodes=1)", "tp_size)", "signature", "without nnodes"),
        ("(gpu_id, tp_size,", "(gpu_id, pp_size, tp_size,", "signature",
         "new required pp_size; pp_size before what was there"),
        ("(gpu_id, tp_size, nnodes=1)", "(tp_size, gpu_id, nnodes=1)", "signature", "another order"),
        ("return gpu_id", "return gpu_id + 1", "body", "the body changed"),
        ("def set_affinity", "async def set_affinity", "kind", "async function, was function"),
        ("def set_affinity", "@cache\n        def set_affinity", "decorators", "@cache, was none"),
    ],
)  # fmt: skip
def test_what_became_of_a_hooked_function(
    pair: Pair, old: str, new: str, aspect: str, text: str
) -> None:
    found = change(pair.edit(COMMON, old, new).diff(), "set_affinity")
    assert text in fact(found, aspect).text
    assert found.landing == "hook" and found.bindings == ("affinity",) and found.followed
    assert found.old is not None and found.new is not None
    assert found.old.path == found.new.path == "sglang.srt.utils.common.set_affinity"


def test_a_changed_body_has_a_readable_diff_with_the_lines_of_the_files(pair: Pair) -> None:
    edited = pair.edit(
        COMMON, "return gpu_id\n", "if tp_size:\n                pass\n            return gpu_id\n"
    )
    found = change(edited.diff(), "set_affinity")
    assert found.risk is Risk.MEDIUM and found.lines == (2, 0)
    rows = found.code.split("\n")
    assert rows[0].startswith("--- sglang/srt/utils/common.py:")
    head = next(row for row in rows if row.startswith("@@"))
    line = found.new.line if found.new else 0
    assert head == f"@@ -{line},2 +{line},4 @@"
    assert "+    if tp_size:" in rows and " def set_affinity(gpu_id, tp_size, nnodes=1):" in rows


def test_comments_and_docstrings_are_no_change(pair: Pair) -> None:
    edited = pair.edit(COMMON, "return gpu_id\n", '"""Why."""\n            return gpu_id  # so\n')
    assert edited.diff().changes == ()


def test_a_moved_function_is_found_and_compared(pair: Pair) -> None:
    moved = pair.edit(COMMON, SET, "pass_ = 1\n").add(
        "sglang/srt/utils/host.py", f"{SET}".replace("            ", "    ")
    )
    found = change(moved.diff(), "sglang.srt.utils.host.set_affinity")
    assert found.risk is Risk.HIGH and not found.followed
    text = fact(found, "moved").text
    assert "sglang.srt.utils.common.set_affinity is gone" in text
    assert "it is sglang.srt.utils.host.set_affinity now" in text


def test_a_move_that_leaves_the_old_path_in_place_is_no_break(pair: Pair) -> None:
    moved = pair.edit(COMMON, SET, "from sglang.srt.utils.host import set_affinity\n").add(
        "sglang/srt/utils/host.py",
        "def set_affinity(gpu_id, tp_size, nnodes=1):\n    return gpu_id\n",
    )
    found = change(moved.diff(), "set_affinity")
    assert "the old path leads there" in fact(found, "moved").text
    assert found.followed and found.risk is not Risk.HIGH


def test_a_function_that_is_gone(pair: Pair) -> None:
    gone = pair.edit(COMMON, SET, "pass_ = 1\n").edit(
        "sglang/srt/model_executor/graphs.py",
        "from sglang.srt.utils.common import set_affinity\n",
        "set_affinity = print\n",
    )
    found = change(gone.diff(), "set_affinity")
    assert found.risk is Risk.HIGH and found.new is None
    assert "sglang.srt.utils.common.set_affinity is gone" in fact(found, "gone").text


def test_a_binding_that_names_another_place_in_each_release_is_followed(pair: Pair) -> None:
    there = pair.before(
        COMMON, "def set_affinity(gpu_id, tp_size, nnodes=1)", "def set_gpu_affinity(gpu_id)"
    )
    ranges = there.edit(MAP, '- {sglang: "<0.5.18", target', '- {sglang: "<0.5.19", target').edit(
        MAP,
        '{sglang: ">=0.5.18", target: sglang.srt.utils',
        '{sglang: ">=0.5.19", target: sglang.srt.utils',
    )
    found = change(ranges.diff(), "set_affinity")
    assert found.followed and "the documents name both" in fact(found, "renamed").text
    assert found.risk is Risk.MEDIUM


def test_a_value_that_is_extended(pair: Pair) -> None:
    found = change(pair.edit(COMMON, '["triton"]', '["triton", "qsa"]').diff(), "CHOICES")
    assert fact(found, "value").text == "adds 'qsa'"


def test_who_calls_an_operator(pair: Pair) -> None:
    graphs = "sglang/srt/model_executor/graphs.py"
    called = pair.edit(graphs, "silu_and_mul(x)", "silu_and_mul(x, out=x)").add(
        graphs, "def other(x):\n    return silu_and_mul(x)\n"
    )
    found = change(called.diff(), "ops.activation.silu_and_mul")
    assert found.landing == "operator" and found.family == "activation"
    assert fact(found, "calls").text == "run passes out= too"
    assert fact(found, "callers").text == "now also called by other"
    quiet = pair.edit(graphs, "return silu_and_mul(x)", "return x")
    text = fact(change(quiet.diff(), "ops.activation.silu_and_mul"), "calls").text
    assert text == "nothing calls it any more, 1 call(s) did"


def test_the_forward_that_stands_for_a_class(pair: Pair) -> None:
    edited = pair.edit(
        "sglang/srt/layers/activation.py", "def forward_native(self, x):\n                return x",
        "def forward_native(self, x):\n                return x + 1",
    )  # fmt: skip
    diff = edited.diff()
    forward = change(diff, "SiluAndMul.forward_native")
    assert forward.roles == ("forward",) and "+    return x + 1" in forward.code
    assert change(diff, "activation.SiluAndMul").landing == "operator"


def test_a_watched_neighbour(pair: Pair) -> None:
    watching = pair.add(COMMON, "def near(x):\n    return 1\n").edit(
        MAP,
        'impl: "our_impls:set_affinity"',
        'impl: "our_impls:set_affinity"\n    watch: [sglang.srt.utils.common.near]',
    )
    pair = Pair(watching.old.add(COMMON, "def near(x):\n    return 2\n"), watching.new)
    found = change(pair.diff(), "near")
    assert found.landing == "neighbour" and found.bindings == ("affinity",)
    assert found.roles == ("watch",) and found.lines == (1, 1)


@pytest.mark.parametrize(
    ("old", "new", "subject", "aspect", "text", "risk"),
    [
        ("def supports_mamba(self)", "def supports_mamba(self, model=None)", "supports_mamba",
         "signature", "new model", Risk.MEDIUM),
        ("def get_graph_runner_cls(self):\n                return None",
         "def get_graph_runner_cls(self):\n                return 1", "get_graph_runner_cls",
         "body", "the body changed", Risk.MEDIUM),
        ("supports_triton: bool = False", "supports_triton: bool = True",
         "capabilities.supports_triton", "default", "True, was False", Risk.MEDIUM),
        ("supports_triton: bool = False", "supports_triton: bool = False\n            fast: bool = False",
         "capabilities.fast", "added", f"new since {OLD}, False by default", Risk.LOW),
        ("def get_kv_pool_cls(self, *, kind):", "def get_pool_cls(self, *, kind):",
         "platform/get_kv_pool_cls", "removed", f"not in {NEW} any more", Risk.HIGH),
        ("def get_dispatch_key_name(self) -> str:", "def asked(self):\n                return 1\n\n            def get_dispatch_key_name(self) -> str:",
         "asked", "added", f"new since {OLD}: asked(self)", Risk.LOW),
    ],
)  # fmt: skip
def test_the_platform(
    pair: Pair, old: str, new: str, subject: str, aspect: str, text: str, risk: Risk
) -> None:
    diff = pair.edit(INTERFACE, old, new).diff()
    (found,) = [c for c in diff.changes if subject in (c.subject, c.id)]
    assert found.landing == "platform" and text in fact(found, aspect).text
    assert found.risk is risk


def test_who_asks_the_platform(pair: Pair) -> None:
    graphs = "sglang/srt/model_executor/graphs.py"
    asking = pair.edit(
        graphs,
        "def wanted():",
        "def more():\n            return current_platform.supports_mamba()\n\n        def wanted():",
    )
    found = change(asking.diff(), "supports_mamba")
    assert fact(found, "readers").text == f"upstream asks for it now: {graphs}"
    added = asking.edit(
        INTERFACE,
        "def supports_mamba(self)",
        "def is_new(self):\n                return 1\n\n            def supports_mamba(self)",
    )
    asked = added.edit(graphs, "current_platform.supports_mamba()", "current_platform.is_new()")
    assert change(asked.diff(), "is_new").risk is Risk.MEDIUM


@pytest.mark.parametrize(
    ("old", "new", "subject", "facts"),
    [
        ("page_size: Optional[int] = None", "page_size: int = 64", "page_size",
         {"type": "int, was Optional[int]", "default": "64, was None"}),
        ("page_size: Optional[int] = None", "pass_ = 1", "page_size",
         {"removed": f"not in {NEW} any more: Optional[int]"}),
        ("page_size: Optional[int] = None", "page_size: Optional[int] = None\n            rows: List[int] = field(default_factory=list)",
         "rows", {"added": f"new since {OLD}: List[int], list by default"}),
        ('["triton", "torch"]', '["triton", "qsa"]', "backend",
         {"choices": "takes qsa now; no longer torch"}),
    ],
)  # fmt: skip
def test_server_arguments(
    pair: Pair, old: str, new: str, subject: str, facts: dict[str, str]
) -> None:
    found = change(pair.edit(ARGS, old, new).diff(), subject)
    assert found.landing == "server_args" and found.risk is Risk.LOW
    assert {f.aspect: f.text for f in found.facts} == facts


def test_a_server_argument_that_the_map_sets(pair: Pair) -> None:
    setting = pair.edit(
        MAP, "stack:", "server_args:\n  - {arg: page_size, default: 128, why: pages}\nstack:"
    )
    gone = setting.edit(ARGS, "page_size: Optional[int] = None", "pass_ = 1")
    found = change(gone.diff(), "page_size")
    assert found.risk is Risk.HIGH and found.status == "bound"
    assert fact(found, "used").text == "the map sets it"
    place = gone.new.place(MAP, "{arg: page_size, default: 128, why: pages}")
    assert found.stated == place.rpartition(":")[0]
    step = item(gone.diff(), "page_size")
    assert not step.done and [f.code for f in step.findings] == ["KA209"]
    assert step.changes == (found.id,)


def test_environment_variables(pair: Pair) -> None:
    environ = "sglang/srt/environ.py"
    edited = pair.edit(environ, "SGLANG_LOG = EnvBool(False)", "SGLANG_LOG = EnvInt(1)").edit(
        environ, 'SGLANG_DIR = EnvStr("/tmp")', "pass"
    )
    read = edited.add(COMMON, 'import os\nX = os.environ.get("SGLANG_FAST", "1")\n')
    diff = read.edit(
        MAP, "stack:", "environment:\n  - {name: SGLANG_DIR, default: x, why: so}\nstack:"
    ).diff()
    log, dir_, fast = (change(diff, f"SGLANG_{n}") for n in ("LOG", "DIR", "FAST"))
    assert {f.aspect: f.text for f in log.facts} == {
        "type": "EnvInt, was EnvBool",
        "default": "1, was False",
    }
    assert dir_.risk is Risk.MEDIUM and fact(dir_, "removed").text.endswith("any more: EnvStr")
    assert fact(fast, "added").text == f"new since {OLD}: read in place"
    assert fast.new is not None and fast.new.file == COMMON


def test_new_features(pair: Pair) -> None:
    registry = "sglang/srt/layers/attention/attention_registry.py"
    diff = (
        pair.add(registry, '@register_attention_backend("qsa")\ndef create_qsa(runner):\n    pass\n')
        .edit("sglang/srt/layers/quantization/__init__.py", '"fp8": Fp8', '"fp4": Fp4')
        .add("sglang/srt/models/qsa.py", "class QsaForCausalLM:\n    pass\n\nEntryClass = QsaForCausalLM\n")
        .add("sglang/srt/layers/activation.py", "class GeluAndMul(BaseFusedOp):\n    def forward_native(self, x):\n        return x\n")
        .add(KERNELS, "def fresh(x):\n    return x\n")
        .diff()
    )  # fmt: skip
    told = {
        (c.subject, c.roles[0], c.family, c.risk.value)
        for c in diff.changes
        if c.landing == "feature"
    }
    assert told == {
        ("qsa", "attention backend", "attention", "medium"),
        ("fp4", "quantization method", "quantization", "medium"),
        ("fp8", "quantization method", "quantization", "low"),
        ("QsaForCausalLM", "model architecture", "", "low"),
        ("sglang.srt.layers.activation.GeluAndMul", "fused operator", "activation", "medium"),
        (
            "sglang.kernels.ops.activation",
            "functions of a module that is bound",
            "activation",
            "low",
        ),
    }
    kernels = change(diff, "sglang.kernels.ops.activation")
    assert fact(kernels, "added").text == "new beside what is bound: fresh (function)"


def test_a_process_that_begins_to_load_plugins(pair: Pair) -> None:
    managers = "sglang/srt/managers/scheduler.py"
    quiet = Pair(pair.old.edit(managers, "load_plugins()", "pass"), pair.new)
    found = change(quiet.diff(), "scheduler")
    assert found.landing == "process" and found.risk is Risk.MEDIUM
    assert fact(found, "plugins").text == "the scheduler loads plugins now"
    lost = change(pair.edit(managers, "load_plugins()", "pass").diff(), "scheduler")
    assert lost.risk is Risk.HIGH
    assert lost.stated.startswith("platform_map.yaml:") and not lost.followed


def test_a_process_that_the_map_knows_to_load_none_is_no_high_risk(pair: Pair) -> None:
    managers = "sglang/srt/managers/scheduler.py"
    known = pair.edit(managers, "load_plugins()", "pass").edit(
        MAP, f"{{{SCHEDULER}}}", f"{{{SCHEDULER}, loads_plugins: false}}"
    )
    diff = known.diff()
    found = change(diff, "scheduler")
    assert found.followed and found.risk is Risk.MEDIUM
    assert item(diff, "scheduler: plugins").done


def test_changes_come_by_landing_and_then_by_risk(pair: Pair) -> None:
    edited = (
        pair.edit(COMMON, "tp_size, nnodes=1)", "tp_size, ranks, nnodes=1)")
        .edit(COMMON, '["triton"]', '["triton", "x"]')
        .edit(INTERFACE, "def supports_mamba(self)", "def supports_mamba(self, model=None)")
        .edit(ARGS, "page_size: Optional[int] = None", "page_size: int = 64")
    )
    order = [(c.landing, c.risk.value) for c in edited.diff().changes]
    assert order == [
        ("platform", "medium"),
        ("hook", "high"),
        ("hook", "medium"),
        ("server_args", "low"),
    ]


def test_a_long_diff_is_cut_and_says_so() -> None:
    before, after = Location("a.py", 10), Location("b.py", 20)
    short = code_diff("x\n" * 3, "x\n" * 2 + "y\n", before, after)
    assert short.split("\n")[2:] == ["@@ -10,3 +20,3 @@", " x", " x", "-x", "+y"]
    long = code_diff("x\n", "\n".join(map(str, range(MOST))), before, after)
    assert long.split("\n")[-1].startswith("\\ ") and len(long.split("\n")) == MOST + 1
    huge = code_diff("x\n" * TOO_LONG, "y\n", before, after)
    assert huge.split("\n")[-1] == "\\ too long to be compared here"
    assert code_diff(None, "y\n", before, after) == "" == code_diff("y\n", "y\n", before, after)


def test_a_method_that_its_class_calls_otherwise(pair: Pair) -> None:
    runner = "sglang/srt/runner.py"
    hooked = pair.edit(MAP, "stack:", "stack:").edit(
        MAP,
        "  - id: choices\n",
        '  - id: replaying\n    why: so\n    type: around\n    impl: "our_impls:set_affinity"\n    at:\n'
        "      - {target: sglang.srt.runner.GraphRunner.replay, args: {batch: batch}, ignores: {skip: $any}}\n"
        "  - id: choices\n",
    )
    calling = (
        "def again(self):\n                return self.replay(1)\n\n            def replay(self"
    )
    both = Pair(
        hooked.old.edit(runner, "def replay(self", calling),
        hooked.new.edit(runner, "def replay(self", calling),
    )
    found = change(
        both.edit(runner, "self.replay(1)", "self.replay(1, skip=True)").diff(),
        "GraphRunner.replay",
    )
    assert fact(found, "calls").text == "GraphRunner.again passes skip= too"

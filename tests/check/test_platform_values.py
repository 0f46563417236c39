# ruff: noqa: E501 -- the YAML lines stay whole
"""KA207 to KA211 and KA501: what the map gives, against what the release makes of it."""

from __future__ import annotations

import ast

import pytest

from kunlun_adapt.check.annotations import differ
from kunlun_adapt.diagnostics import Severity
from tests.check.all_examples import EXAMPLES
from tests.check.bench import IMPLS, MAP, RECIPE, Bench
from tests.check.examples import COMMON, INTERFACE
from tests.check.examples_platform import CUSTOM_OPS, REGISTER, REGISTRY, with_server_args
from tests.check.said import codes, only

MIXIN = "sglang/srt/platforms/device_mixin.py"
SERVER_ARGS = "sglang/srt/server_args.py"
OURS = "def total_memory(device_id=0):"


# --- methods ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ours", "theirs", "different"),
    [
        ("str", "int", True),
        ("str", "torch.device", True),
        ("torch.device", "'torch.device'", False),
        ("int", "float", False),
        ("bool", "int", False),
        ("float", "int", True),
        ("int", "Optional[int]", False),
        ("int | None", "int", True),
        ("None", "int", True),
        ("tuple[int, int]", "Tuple[int, ...]", False),
        ("list", "Union[List[int], None]", False),
        ("str", "Any", False),
        ("Thing", "int", False),
        ("int", "Thing | None", False),
        ("'not an (annotation'", "int", False),
    ],
)
def test_annotations_differ_where_their_text_tells(ours: str, theirs: str, different: bool) -> None:
    one, other = (ast.parse(text, mode="eval").body for text in (ours, theirs))
    assert differ(one, other) is different


def test_a_method_that_cannot_take_the_call(bench: Bench) -> None:
    found = only(bench.edit(IMPLS, OURS, "def total_memory(device):").findings(), "KA207")
    assert "it does not take 'device_id'; nothing is passed for 'device'" in found.message
    assert found.suggestion == "write `def total_memory(device_id=0): …`"
    assert found.target == "sglang.srt.platforms.interface.SRTPlatform.get_device_total_memory"
    assert str(found.upstream).startswith(MIXIN)


@pytest.mark.parametrize(
    "ours", ["def total_memory(device_id=0) -> int:", "def total_memory(device_id=0) -> bool:",
             "def total_memory(**kwargs):", "@cached\ndef total_memory() -> str:"],
)  # fmt: skip
def test_a_method_that_fits(bench: Bench, ours: str) -> None:
    assert codes(bench.edit(IMPLS, OURS, ours).findings()) == []


def test_upstreams_method_changed_in_both(bench: Bench) -> None:
    changed = bench.edit(IMPLS, OURS, "def total_memory(device_id=0) -> int:")
    changed = changed.edit(MIXIN, "get_device_total_memory(self, device_id: int = 0) -> int",
                           'get_device_total_memory(self, local_rank) -> "str"')  # fmt: skip
    found = only(changed.findings(), "KA207")
    assert "it does not take 'local_rank'; it returns int, and upstream str" in found.message
    assert found.suggestion == "write `def total_memory(local_rank) -> str: …`"


# --- capabilities ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("platform.capabilities.graph_capture", True),
        ('getattr(platform.capabilities, "graph_capture")', True),
        ("platform.capabilities.graph_captures", False),
        ("runner.graph_capture", False),  # capabilities are spoken of nowhere in the file
        ("graph_capture()", False),
    ],
)
def test_who_asks_for_a_capability(bench: Bench, text: str, asked: bool) -> None:
    changed = bench.edit(
        "sglang/srt/model_executor/graphs.py", "platform.capabilities.graph_capture", text
    )
    assert codes(changed.findings()) == ([] if asked else ["KA208"])


def test_the_platform_itself_does_not_ask(bench: Bench) -> None:
    changed = EXAMPLES["KA208"].change(bench)
    changed = changed.add("sglang/srt/platforms/cpu.py", "capabilities.graph_capture = True\n")
    assert codes(changed.findings()) == ["KA208"]


def test_a_capability_that_is_off_needs_nobody(bench: Bench) -> None:
    changed = EXAMPLES["KA208"].change(bench)
    changed = changed.edit(MAP, "{card: true, simulator: false}", "false")
    assert codes(changed.findings()) == []


def test_a_capability_that_is_a_method(bench: Bench) -> None:
    left = "left_at_default:\n  - {member: supports_mamba, why: no recurrent model is bound}\n"
    changed = bench.edit(MAP, left, "").edit(
        MAP, "  triton: false", "  triton: false\n  mamba: true"
    )
    changed = changed.edit(
        MAP,
        "  capabilities.triton:\n",
        "  capabilities.mamba:\n    - {method: supports_mamba}\n  capabilities.triton:\n",
    )
    found = only(changed.findings(), "KA208")
    assert found.message.endswith("asks for supports_mamba")
    asked = changed.add("sglang/srt/models.py", "ok = current_platform.supports_mamba()\n")
    assert codes(asked.findings()) == []


# --- server arguments ------------------------------------------------------------------------

COMPOSED = """\
from sglang.srt.fields.model import Model
from sglang.srt.fields.memory import Memory

class ServerArgs:
    def check(self):
        pass

OTHERS = [Model]
NAMES = ["Model", "Memory"]
SOURCES = [Model, Memory]
ServerArgs = msgspec.defstruct("ServerArgs", collect(SOURCES))
"""


def composed(bench: Bench) -> Bench:
    """Take the fields out of the class, as releases since 0.5.21 do."""
    fields = bench.upstream[SERVER_ARGS]
    model = "class Model:\n    model_path: str\n"
    memory = fields.replace("class ServerArgs", "class Memory").replace(
        '    model_path: A[str, "Where the weights are."]\n', "    gpu_id = Derived()\n"
    )
    changed = bench.drop(SERVER_ARGS).add(SERVER_ARGS, COMPOSED)
    return changed.add("sglang/srt/fields/model.py", model).add(
        "sglang/srt/fields/memory.py", memory
    )


@pytest.mark.parametrize("made", ["one class", "several"])
@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ("arg: page_size, default: 128", None),
        ("arg: page_size, force: 64", None),
        ("arg: page_size, default: [1]", "takes Optional[int], not [1]"),
        ("arg: page_size, default: true", "takes Optional[int], not true"),
        ("arg: page_size, default: 1.5", "takes Optional[int], not 1.5"),
        ("arg: kv_cache_dtype, default: bf16", None),
        ("arg: kv_cache_dtype, default: fp8", "takes one of auto, bf16, not fp8"),
        ("arg: page_siz, default: 128", "has no server argument 'page_siz'"),
        ("arg: gpu_id, default: 1", "has no server argument 'gpu_id'"),
        ("arg: check, default: 1", "has no server argument 'check'"),
        ('arg: page_siz, default: 128, sglang: "<0.5.19"', None),
    ],
)
def test_arguments_of_the_map(bench: Bench, made: str, entry: str, says: str | None) -> None:
    changed = with_server_args(bench, entry)
    changed = composed(changed) if made == "several" else changed
    findings = changed.findings()
    if says is None:
        assert codes(findings) == []
    else:
        assert says in only(findings, "KA209").message


def test_the_place_of_a_forced_value(bench: Bench) -> None:
    changed = with_server_args(bench, "arg: page_size, force: fast")
    found = only(changed.findings(), "KA209")
    assert str(found.position) == changed.place(MAP, "fast,")
    assert str(found.upstream) == f"{SERVER_ARGS}:3"


TYPES = [
    ("bool", "true", "1"),
    ("float", "1", "high"),
    ("A[float]", "0.5", "true"),
    ("Optional[str]", "null", "3"),
    ("'str'", "a", "3"),
    ("str | None", "a", "3"),
    ("List[str]", "[a]", "a"),
    ("Optional[Union[str, List[str]]]", "[a]", "3"),
    ('Literal["a", "b"]', "b", "c"),
    ('Optional[Literal["a", "b"]]', "b", "c"),
    ('Union[Literal["a"], Literal["b"]]', "b", "c"),
    ("A[Optional[str], Arg(choices=KNOWN)]", "kunlun", "other"),
    ('A[List[str], Arg(choices=["a", "b"])]', "[a, b]", "[a, c]"),
    ("dict[str, int]", None, "a"),
]


@pytest.mark.parametrize(("annotation", "good", "bad"), TYPES)
def test_what_fields_take(bench: Bench, annotation: str, good: str | None, bad: str) -> None:
    def given(value: str) -> list[str]:
        changed = with_server_args(bench, f"arg: tried, default: {value}")
        changed = changed.add(SERVER_ARGS, f'    tried: {annotation} = X\n\nKNOWN = ["kunlun"]\n')
        return codes(changed.findings())

    if good not in (None, "null"):
        assert given(str(good)) == []
    assert given(bad) == ["KA209"]


@pytest.mark.parametrize(
    "annotation",
    [
        "Callable",
        "Optional[Path]",
        "A[str, Arg(choices=names())]",
        "A[str, Arg(choices=[*KNOWN])]",
        "Any",
    ],
)
def test_what_nobody_can_tell(bench: Bench, annotation: str) -> None:
    changed = with_server_args(bench, "arg: tried, default: some")
    changed = changed.add(SERVER_ARGS, f"    tried: {annotation} = X\n\nKNOWN = []\n")
    assert codes(changed.findings()) == []


def test_choices_that_a_hook_of_ours_extends(bench: Bench) -> None:
    changed = with_server_args(bench, "arg: tried, default: kunlun")
    changed = changed.add(
        SERVER_ARGS, "    tried: A[str, Arg(choices=CHOICES)] = X\n\nKNOWN = []\n"
    )
    changed = changed.edit(
        SERVER_ARGS,
        "class ServerArgs",
        "from sglang.srt.utils.common import CHOICES\n\nclass ServerArgs",
    )
    assert codes(changed.findings()) == []
    assert codes(changed.edit(MAP, "    value: [kunlun]", "    value: [other]").findings()) == [
        "KA209"
    ]


def test_a_class_that_cannot_be_read_says_nothing(bench: Bench) -> None:
    changed = with_server_args(bench, "arg: page_siz, default: 128")
    changed = changed.drop(SERVER_ARGS).add(SERVER_ARGS, "ServerArgs = make()\n")
    assert codes(changed.findings()) == []


RECIPES = """\
apiVersion: kunlun-adapt/v1
kind: AdaptationRecipe
name: llama
sglang: "{range}"
why: the first model that is served
server_args: {{page_size: 16, page_siz: 16, kv_cache_dtype: fp8}}
"""


def test_arguments_of_a_recipe(bench: Bench) -> None:
    changed = with_server_args(bench, "arg: page_size, default: 128")
    told = changed.add("recipes/llama.yaml", RECIPES.format(range=">=0"))
    findings = told.findings()
    assert codes(findings) == ["KA209", "KA209"]
    places = [told.place("recipes/llama.yaml", text) for text in ("page_siz: ", "fp8")]
    assert [str(f.position) for f in findings] == places
    elsewhere = changed.add("recipes/llama.yaml", RECIPES.format(range="<0.5.19"))
    assert codes(elsewhere.findings()) == []


# --- names -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("registry", "collides"),
    [
        (REGISTRY, True),
        (REGISTRY.replace('"kunlun"', '"other"'), False),
        (
            REGISTRY.replace("OPS = {}", 'OPS = {"kunlun": 1}').replace(
                '@register_op("kunlun")\n', ""
            ),
            True,
        ),
        (REGISTRY.replace('@register_op("kunlun")\n', ""), False),
        (REGISTRY.replace('@register_op("kunlun")', "@register_op(name())"), False),
    ],
)
def test_names_that_are_registered(bench: Bench, registry: str, collides: bool) -> None:
    changed = bench.add("sglang/srt/ops.py", registry).edit(MAP, "hooks:\n", REGISTER)
    assert codes(changed.findings()) == ["KA210"] * collides


def test_a_name_that_is_taken_on_purpose(bench: Bench) -> None:
    changed = EXAMPLES["KA210"].change(bench)
    accepts = "    accepts: [{code: KA210, why: ours is the only one that runs here}]\n"
    accepted = changed.edit(
        MAP, "    value: [kunlun]\n    impl", f"    value: [kunlun]\n{accepts}    impl"
    )
    found = only(accepted.findings(), "KA210")
    assert found.severity is Severity.INFO
    assert found.message.endswith("(accepted: ours is the only one that runs here)")


FORWARD = "    def forward_native(self, x):\n                return x\n\n            def forward_npu(self, x):\n                return x\n"


@pytest.mark.parametrize(
    ("profile", "says"),
    [
        ("{reports_as: cuda, dispatch_key: npu, distributed_backend: nccl}", "npu"),
        ("{reports_as: npu, dispatch_key: npu, distributed_backend: nccl}", None),
        ("{reports_as: cuda, dispatch_key: kunlun, distributed_backend: nccl}", None),
    ],
)
def test_a_dispatch_key_of_another_device(bench: Bench, profile: str, says: str | None) -> None:
    activation = "sglang/srt/layers/activation.py"
    changed = bench.edit(
        activation, "    def forward_native(self, x):\n                return x\n", FORWARD
    )
    changed = changed.edit(
        MAP, "{reports_as: cuda, dispatch_key: cuda, distributed_backend: nccl}", profile
    )
    findings = changed.findings()
    assert codes(findings) == (["KA210"] if says else [])
    if says:
        assert "runs its forward_npu" in findings[0].message
        assert str(findings[0].upstream).startswith(activation)


# --- custom ops ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("is_npu() or current_platform.is_out_of_tree()", "is_npu()"),
        ('"PrivateUse1"', '"CUDA"'),
        ("def direct_register_custom_op", "def register_custom_op"),
    ],
)
def test_custom_ops_under_cuda(bench: Bench, old: str, new: str) -> None:
    assert codes(bench.add(COMMON, CUSTOM_OPS.replace(old, new)).findings()) == []


def test_a_profile_that_does_not_answer_to_cuda(bench: Bench) -> None:
    changed = bench.add(COMMON, CUSTOM_OPS)
    changed = changed.edit(
        MAP, "{reports_as: cuda, dispatch_key: cuda", "{reports_as: kunlun, dispatch_key: kunlun"
    )
    assert codes(changed.findings()) == []


@pytest.mark.parametrize(("range", "accepted"), [(">=0.5.19", True), ("<0.5.19", False)])
def test_what_the_map_accepts_at_its_top(bench: Bench, range: str, accepted: bool) -> None:
    row = f'accepts:\n  - {{code: KA211, sglang: "{range}", why: no such op is reached}}\n'
    changed = EXAMPLES["KA211"].change(bench).edit(MAP, "stack:\n", f"{row}stack:\n")
    found = only(changed.findings(), "KA211")
    assert (found.severity is Severity.INFO) is accepted
    assert ("(accepted: no such op is reached)" in found.message) is accepted


def test_the_map_accepts_nothing_for_a_hook(bench: Bench) -> None:
    changed = EXAMPLES["KA210"].change(bench)
    changed = changed.edit(
        MAP, "stack:\n", "accepts:\n  - {code: KA210, why: nobody says}\nstack:\n"
    )
    unused, told = sorted(changed.findings(), key=lambda f: f.code)
    assert (told.code, told.severity) == ("KA210", Severity.WARNING)
    assert unused.code == "KA012"
    assert unused.suggestion is not None
    assert unused.suggestion.startswith(f"KA210 is said of {told.binding}: accept it there, or")


def test_errors_are_not_accepted(bench: Bench) -> None:
    changed = EXAMPLES["KA207"].change(bench)
    changed = changed.edit(
        MAP, "stack:\n", "accepts:\n  - {code: KA207, why: nobody says}\nstack:\n"
    )
    unused, told = sorted(changed.findings(), key=lambda f: f.code)
    assert (told.code, told.severity) == ("KA207", Severity.ERROR)
    assert unused.code == "KA012"
    assert unused.message == "KA207 is an error in every release, and errors are not accepted"


# --- the stack, and releases without a door -----------------------------------------------------


@pytest.mark.parametrize(
    ("row", "covered"),
    [
        ("0.5.19", True),
        ("0.5.19.0", True),
        ("==0.5.*", True),
        (">=0.5.17,<0.5.20", True),
        ("0.5.18", False),
        (">0.5.19", False),
        ("newest", False),
        ("", False),
    ],
)
def test_rows_of_the_stack(bench: Bench, row: str, covered: bool) -> None:
    changed = bench.edit(MAP, '- {sglang: ">=0", verified', f'- {{sglang: "{row}", verified')
    assert codes(changed.findings()) == ([] if covered else ["KA501"])


def test_a_map_without_a_stack(bench: Bench) -> None:
    changed = bench.edit(MAP, 'stack:\n  - {sglang: ">=0", verified: simulator}\n', "")
    found = only(changed.findings(), "KA501")
    assert found.message == "the stack has no row for sglang 0.5.19"
    assert found.position.line == 4


def test_no_door_comes_first_and_alone(bench: Bench) -> None:
    changed = bench.drop("sglang/srt/platforms/").drop("sglang/srt/plugins/").version("0.5.9")
    assert codes(changed.findings()) == ["KA205", "KA009"]
    assert codes(changed.findings(beyond=True)) == ["KA205"]
    for beyond in (False, True):
        report = changed.report(beyond=beyond)
        assert (report.bound, report.planned, report.excluded) == (0, 0, 16)
    other = changed.edit(RECIPE, "fallback: true", "falback: true").findings()
    assert other[0].code == "KA205" and other[0].position > other[1].position
    assert INTERFACE not in changed.upstream

# ruff: noqa: E501 -- texts stay whole
"""What a release offers by name, however it says so."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from kunlun_adapt.upstream import Location, Resolver, open_release
from kunlun_adapt.upstream.inventory import TABLES, fields, inventory

Files = Mapping[str, str]
Make = Callable[[Files], Resolver]

ARGS = "sglang/srt/server_args.py"


def test_fields_of_a_class_and_of_what_it_derives_from(resolver: Make) -> None:
    found = inventory(
        resolver(
            {
                ARGS: """\
                from dataclasses import dataclass, field

                CHOICES = ["a", "b"]

                class Base:
                    port: int = 1
                    host: "Optional[str]" = None

                @dataclass
                class ServerArgs(Base):
                    port: int = 2
                    must: str
                    rows: list = field(default_factory=list)
                    backend: A[str, Arg(help="x", choices=CHOICES), NS("y")] = "a"
                    copied: A[str, Arg(choices=list(CHOICES))] = "a"
                    made: A[str, Arg(choices=make())] = "a"

                    def method(self):
                        pass
                """
            }
        ),
        "server_args",
    )
    assert {n: (i.text, i.default) for n, i in found.items()} == {
        "port": ("int", "2"),
        "must": ("str", None),
        "rows": ("list", "list"),
        "backend": ("str", "'a'"),
        "copied": ("str", "'a'"),
        "made": ("str", "'a'"),
        "host": ("Optional[str]", "None"),
    }
    choices = {name: item.choices for name, item in found.items() if item.choices}
    assert choices == {"backend": ("a", "b"), "copied": ("a", "b")}
    assert found["must"].location == Location(ARGS, 12)


def test_fields_of_a_class_that_is_put_together_from_others(resolver: Make) -> None:
    facts = resolver(
        {
            ARGS: """\
            import msgspec
            from sglang.srt.groups import Memory, Serving

            class ServerArgs:
                pass

            GROUPS = [Memory, Serving]
            ServerArgs = msgspec.defstruct("ServerArgs", make(GROUPS))
            ServerArgs.GROUPS = GROUPS
            """,
            "sglang/srt/groups.py": "class Memory:\n    page_size: int = 1\n\nclass Serving:\n    port: int\n",
        }
    )
    found = fields(facts, "sglang.srt.server_args.ServerArgs")
    assert {name: item.text for name, item in found.items()} == {"page_size": "int", "port": "int"}
    assert found["port"].location == Location("sglang/srt/groups.py", 5)
    assert fields(facts, "sglang.srt.server_args.Nothing") == {}


def test_variables_of_the_registry_and_those_read_in_place(resolver: Make) -> None:
    found = inventory(
        resolver(
            {
                "sglang/srt/environ.py": """\
                class Envs:
                    # A section.
                    SGLANG_LOG = EnvBool(False)
                    SGLANG_DIR = EnvStr(None, secret=True)
                    lower = EnvBool(True)
                """,
                "sglang/srt/a.py": """\
                import os
                A = os.environ.get("SGLANG_LOG")
                B = os.getenv("OTHER_ONE", "1")
                C = os.environ["THIRD"]
                D = get_bool_env_var("FOURTH")
                E = print("NOT_READ")
                """,
                "sglang/test/b.py": 'import os\nX = os.environ.get("ONLY_TESTED")\n',
            }
        ),
        "environment",
    )
    assert {n: (i.text, i.default) for n, i in found.items()} == {
        "SGLANG_LOG": ("EnvBool", "False"),
        "SGLANG_DIR": ("EnvStr", "None, secret=True"),
        "OTHER_ONE": ("read in place", None),
        "THIRD": ("read in place", None),
        "FOURTH": ("read in place", None),
    }
    assert found["SGLANG_DIR"].location == Location("sglang/srt/environ.py", 4)
    assert found["THIRD"].location == Location("sglang/srt/a.py", 4)


def test_registries(resolver: Make) -> None:
    facts = resolver(
        {
            "sglang/srt/layers/attention/attention_registry.py": """\
            def register_attention_backend(name):
                return lambda make: make

            @register_attention_backend("fa3")
            @register_attention_backend("fa4")
            def create(runner):
                pass
            """,
            "sglang/srt/layers/attention/late.py": """\
            from sglang.srt.layers.attention.attention_registry import register_attention_backend

            @register_attention_backend("late")
            def create_late(runner):
                pass
            """,
            "sglang/srt/layers/quantization/__init__.py": """\
            BASE_QUANTIZATION_METHODS = {"fp8": Fp8, "gptq": Gptq}
            if is_npu():
                BASE_QUANTIZATION_METHODS.update({"gptq": GptqNpu, "int8": Int8})
            QUANTIZATION_METHODS = {**BASE_QUANTIZATION_METHODS}
            """,
            "sglang/srt/models/a.py": "class A:\n    pass\n\nclass B:\n    pass\n\nEntryClass = [A, B]\n",
            "sglang/srt/models/c.py": "class C:\n    pass\n\nEntryClass = C\n",
            "sglang/srt/other.py": "class D:\n    pass\n\nEntryClass = D\n",
        }
    )
    assert set(inventory(facts, "attention_backends")) == {"fa3", "fa4", "late"}
    methods = {n: i.text for n, i in inventory(facts, "quantization_methods").items()}
    assert methods == {"fp8": "Fp8", "gptq": "Gptq | GptqNpu", "int8": "Int8"}
    models = inventory(facts, "models")
    assert set(models) == {"A", "B", "C"}
    assert models["B"].location == Location("sglang/srt/models/a.py", 4)


def test_fused_operators_near_and_far(resolver: Make) -> None:
    facts = resolver(
        {
            "sglang/kernels/fused_op.py": "class BaseFusedOp:\n    pass\n",
            "sglang/srt/a.py": """\
            from sglang.kernels.fused_op import BaseFusedOp

            class Near(BaseFusedOp):
                pass

            class Far(Near):
                pass
            """,
            "sglang/multimodal_gen/b.py": "class CustomOp:\n    pass\n\nclass Other(CustomOp):\n    pass\n",
        }
    )
    assert set(inventory(facts, "fused_ops")) == {"sglang.srt.a.Near", "sglang.srt.a.Far"}


def test_who_reads_the_platform(resolver: Make) -> None:
    facts = resolver(
        {
            "sglang/srt/platforms/__init__.py": "current_platform = None\n",
            "sglang/srt/a.py": """\
            from sglang.srt.platforms import current_platform as here
            from sglang.srt import platforms

            def run():
                here.get_device(0).index
                if here.capabilities.graph_capture:
                    getattr(here, "late")()
                platform = platforms.current_platform
                return platform.is_cuda() and platform.capabilities.pynccl
            """,
            "sglang/srt/b.py": "import platform\nX = platform.machine()\n",
        }
    )
    found = inventory(facts, "platform_readers")
    assert set(found) == {
        *("get_device", "capabilities.graph_capture", "late"),
        *("is_cuda", "capabilities.pynccl"),
    }
    assert found["late"].places == ("sglang/srt/a.py:7",)


def test_who_loads_plugins(resolver: Make) -> None:
    facts = resolver(
        {
            "sglang/srt/plugins/__init__.py": "def load_plugins():\n    pass\n",
            "sglang/srt/a.py": """\
            from sglang.srt.plugins import load_plugins

            def run():
                load_plugins()

            def idle():
                pass
            """,
        }
    )
    assert set(inventory(facts, "plugin_loaders")) == {"sglang.srt.a.run"}


def test_a_release_without_any_of_it_has_empty_tables(resolver: Make) -> None:
    facts = resolver({"sglang/srt/a.py": "x = 1\n"})
    assert {name: inventory(facts, name) for name in TABLES} == {name: {} for name in TABLES}


def test_a_table_of_a_wheel_is_read_once_for_all_runs(
    make_wheel: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = make_wheel({ARGS: "class ServerArgs:\n    port: int = 1\n"})

    def run() -> Resolver:
        facts = Resolver(open_release(str(wheel)))
        facts.use_cache(tmp_path / "cache")
        return facts

    first = run()
    before = inventory(first, "server_args")
    first.keep_answers()
    monkeypatch.setattr("kunlun_adapt.upstream.inventory.TABLES", {"server_args": None})
    assert inventory(run(), "server_args") == before != {}


@pytest.mark.upstream
def test_real_releases() -> None:
    old, new = (Resolver(open_release(release)) for release in ("0.5.19", "0.5.23"))
    for facts in (old, new):
        facts.use_cache()
    args = inventory(new, "server_args")
    assert len(args) > 450 and args["page_size"].text == "Optional[int]"
    assert "qsa" in (args["attention_backend"].choices or ())
    assert len(inventory(old, "environment")) > 700
    assert "SGLANG_OPT_USE_COMPRESSOR_V2" not in inventory(new, "environment")
    assert {"kv_pool", "get_mha_kv_pool_cls"} & inventory(old, "platform_readers").keys()
    assert "get_kv_pool_cls" in inventory(new, "platform_readers")
    loaders = "sglang.srt.managers.detokenizer_manager.run_detokenizer_process"
    assert loaders in inventory(new, "plugin_loaders")
    assert loaders not in inventory(old, "plugin_loaders")
    assert "Glm5NextForConditionalGeneration" in inventory(new, "models")
    for facts in (old, new):
        facts.keep_answers()

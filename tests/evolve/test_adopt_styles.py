"""Each style in which a plugin changes upstream, a few lines of it at a time."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.evolve.plugin_bench import (
    COMMON,
    IMPORTS,
    PROJECT,
    PluginBench,
    hooks,
    left,
    the_map,
    write,
)

AFFINITY = f"{COMMON}.set_affinity"


@pytest.fixture
def bench(tmp_path: Path) -> PluginBench:
    return PluginBench(tmp_path)


@pytest.mark.parametrize(
    "statement",
    [
        f'HookRegistry.register("{AFFINITY}", ours, HookType.REPLACE)',
        f'HookRegistry.register(target="{AFFINITY}", hook=ours, hook_type=HookType.REPLACE)',
        "HookRegistry.register(common.set_affinity, ours, HookType.REPLACE)",
        'HookRegistry.register(f"{common.__name__}.set_affinity", ours, HookType("replace"))',
        f'plugin_hook("{AFFINITY}", type=HookType.REPLACE)(ours)',
        "common.set_affinity = ours",
        'setattr(common, "set_affinity", ours)',
        'setattr(sys.modules["sglang.srt.utils.common"], "set_" + "affinity", ours)',
        'importlib.import_module("sglang.srt.utils.common").set_affinity = ours',
        '__import__("importlib").import_module("x"); common.__dict__["set_affinity"] = ours',
        'vars(common)["set_affinity"] = ours',
        'for name in ("set_affinity",):\n        setattr(common, name, ours)',
        'for name, new in {"set_affinity": ours}.items():\n        setattr(common, name, new)',
        '[setattr(common, name, new) for name, new in [("set_affinity", ours)]]',
        'helper(name="set_affinity", new=ours)',
        '(lambda module: setattr(module, "set_affinity", ours))(common)',
        "functools.partial(setattr, common)('set_affinity', ours)",
        'Patch("set_affinity", ours).apply()',
        'for patch in [Patch("set_affinity", new=ours)]:\n        patch.apply()',
        'wrapt.register_post_import_hook(late, "sglang.srt.utils.common")',
        "if True:\n        common.set_affinity = ours",
        "from .late import bind\n    bind(common)",
    ],
)
def test_a_replacement_is_found_however_it_is_written(bench: PluginBench, statement: str) -> None:
    found = bench.adopt(
        f"""
import functools
import importlib
import sys
from dataclasses import dataclass
import wrapt

def ours(gpu_id, tp_size, nnodes=1):
    "Ours."

def helper(module=common, *, name, new):
    setattr(module, name, new)

def late(module):
    module.set_affinity = ours

@dataclass
class Patch:
    name: str
    new: object

    def apply(self):
        setattr(common, self.name, self.new)

def register():
    {statement}
""",
        late="from . import install\ndef bind(module):\n    module.set_affinity = install.ours\n",
    )
    assert {t: (h["type"], h["impl"]) for t, h in hooks(found).items()} == {
        AFFINITY: ("replace", "ours.install:ours")
    }
    assert hooks(found)[AFFINITY]["takes"] == "arguments"
    assert hooks(found)[AFFINITY]["why"].startswith("Ours. (ours/")
    # The helpers that this statement leaves alone are no more than mentioned.
    assert {reason for reason, _, _ in left(found)} <= {"unreached"}


@pytest.mark.parametrize("kind", ["before", "after", "around", "replace"])
def test_every_type_of_hook(bench: PluginBench, kind: str) -> None:
    found = bench.adopt(f"""
@plugin_hook("{AFFINITY}", type=HookType.{kind.upper()})
def ours(*args):
    return None
""")
    assert hooks(found)[AFFINITY]["type"] == kind


def test_the_type_that_upstream_takes_without_one(bench: PluginBench) -> None:
    found = bench.adopt(f'@plugin_hook("{AFFINITY}")\ndef ours(*args):\n    return None\n')
    assert hooks(found)[AFFINITY]["type"] == "after"


def test_classes_values_lists_and_new_members(bench: PluginBench) -> None:
    found = bench.adopt("""
import sglang.srt.runner
from sglang.srt.runner import GraphRunner
import torch

class Runner(GraphRunner):
    pass

def added(self):
    return 1

def name(device=None):
    return "x"

TABLE = {"made": object()}

def register():
    sglang.srt.runner.GraphRunner = Runner
    GraphRunner.added = added
    GraphRunner.replay = staticmethod(name)
    common.ENABLED = False
    common.CHOICES.append("ours")
    common.CHOICES += ["more", "most"]
    common.CHOICES.extend(("last",))
    torch.cuda.get_device_name = name
    common.CHOICES = TABLE
""")
    said = [(h["at"][0]["target"], h["type"]) for h in the_map(found)["hooks"]]
    assert said == [
        ("sglang.srt.runner.GraphRunner", "replace"),
        ("sglang.srt.runner.GraphRunner.added", "add"),
        ("sglang.srt.runner.GraphRunner.replay", "replace"),
        (f"{COMMON}.ENABLED", "set"),
        (f"{COMMON}.CHOICES", "extend"),
        (f"{COMMON}.CHOICES", "extend"),
        (f"{COMMON}.CHOICES", "extend"),
        ("torch.cuda.get_device_name", "replace"),
        (f"{COMMON}.CHOICES", "set"),
    ]
    by = hooks(found)
    assert "takes" not in by["sglang.srt.runner.GraphRunner"]
    assert by[f"{COMMON}.ENABLED"]["value"] is False
    assert by[f"{COMMON}.CHOICES"]["impl"] == "ours.install:TABLE"
    assert by["torch.cuda.get_device_name"]["at"][0]["package"] == "torch"
    values = [h["value"] for h in the_map(found)["hooks"] if h["type"] == "extend"]
    assert values == [["ours"], ["more", "most"], ["last"]]


def test_what_stands_in_for_a_module(bench: PluginBench) -> None:
    found = bench.adopt(
        """
import sys
import types
from . import stub

def register():
    sys.modules["sgl_kernel"] = stub
    sys.modules.setdefault("deep_gemm", stub)
    sys.modules.update({"deep_ep": stub})
    sys.modules["flashinfer"] = types.ModuleType("flashinfer")
    import flashinfer.norm
    flashinfer.norm.rmsnorm = stub.rmsnorm
""",
        stub="def rmsnorm(x):\n    return x\n",
    )
    shims = {s["module"]: s for s in the_map(found)["shims"]}
    assert {m: s.get("provide") for m, s in shims.items()} == {
        "sgl_kernel": "ours.stub",
        "deep_gemm": "ours.stub",
        "deep_ep": "ours.stub",
        "flashinfer": None,
    }
    assert shims["sgl_kernel"]["shadows"] is True and "shadows" not in shims["deep_gemm"]
    assert shims["flashinfer"]["status"] == "planned"
    assert hooks(found)["flashinfer.norm.rmsnorm"]["at"][0]["provided_by"] == "flashinfer"
    assert [reason for reason, _, _ in left(found)] == ["implementation"]


def test_registrations_and_where_they_show(bench: PluginBench) -> None:
    found = bench.adopt("""
@registry.register_attention_backend("ours")
def create(runner):
    return None

def ours_backend(name):
    def decorator(fn):
        registry.register_attention_backend(f"ours_{name}")(fn)
        return fn
    return decorator

@ours_backend("sparse")
def sparse(runner):
    return None

@registry.register_pair("none", "ours")
def pair(*args):
    return None

def register():
    registry.register_handler(1, "x", create)
    registry.register_second(1, "second", create)
    registry.register_nothing(create)
    registry.register_handler(weight=2, name="y", fn=create)
""")
    place = "sglang.srt.layers.attention.registry"
    said = [
        (h["at"][0]["target"].rpartition(".")[2], h.get("value"), h["at"][0].get("readback"))
        for h in the_map(found)["hooks"]
    ]
    assert sorted(said, key=str) == [
        ("register_attention_backend", ["ours"], {"target": f"{place}.BACKENDS"}),
        ("register_attention_backend", ["ours_sparse"], {"target": f"{place}.BACKENDS"}),
        ("register_handler", [1, "x"], {"target": f"{place}.HANDLERS"}),
        ("register_handler", [2, "y"], {"target": f"{place}.HANDLERS"}),
        ("register_nothing", None, None),
        ("register_pair", ["none", "ours"], None),
        ("register_second", [1, "second"], {"target": f"{place}.BACKENDS", "key": "second"}),
    ]
    by = {target.rpartition(".")[2]: hook for target, hook in hooks(found).items()}
    assert by["register_pair"]["status"] == by["register_nothing"]["status"] == "planned"
    assert "status" not in by["register_attention_backend"]
    assert [reason for reason, _, _ in left(found)] == ["unsupported"] * 2


def test_operators_with_upstreams_own_reference(bench: PluginBench) -> None:
    found = bench.adopt("""
from sglang.srt.layers.activation import SiluAndMul
from sglang.srt.layers.fused import BaseFusedOp

def forward(self, x):
    return x

def register():
    BaseFusedOp.register_oot_forward(SiluAndMul, forward, "ours")
    SiluAndMul.register_oot_forward(op=SiluAndMul, forward=forward, key="ours")
""")
    text = found.files["operator_recipes/adopted.yaml"]
    assert 'golden: "sglang.srt.layers.activation:SiluAndMul.forward_native"' in text
    assert 'impl: "ours.install:forward"' in text
    assert "layer: self" in text and "x: x" in text


def test_models_by_name_and_by_package(bench: PluginBench) -> None:
    found = bench.adopt(
        """
from sglang.srt.models.registry import ModelRegistry

class Direct:
    pass

def register():
    ModelRegistry.models["DirectForCausalLM"] = Direct
    ModelRegistry.register("ours.models", overwrite=True)
""",
        models="class LlamaForCausalLM:\n    pass\nEntryClass = [LlamaForCausalLM]\n",
    )
    said = [(m["architecture"], m["class"], m.get("replaces")) for m in the_map(found)["models"]]
    assert said == [
        ("DirectForCausalLM", "ours.install:Direct", None),
        ("LlamaForCausalLM", "ours.models:LlamaForCausalLM", True),
    ]
    assert "models" in the_map(found)["interface"]


def test_environment_variables(bench: PluginBench) -> None:
    found = bench.adopt("""
import os

def register():
    os.environ.setdefault("ONE", "1")
    os.environ["TWO"] = str(2)
    os.environ.update(THREE="3")
    os.environ["FOUR"] = os.getcwd()
""")
    said = {e["name"]: e["default"] for e in the_map(found)["environment"]}
    assert said == {"ONE": "1", "TWO": "2", "THREE": "3"}
    assert [(reason, line) for reason, _, line in left(found)] == [
        ("condition", 8),
        ("condition", 9),
        ("name", 10),
    ]


def test_what_a_stand_in_offers_is_bound_there(bench: PluginBench) -> None:
    found = bench.adopt(
        """
import sys
import types
from . import kernels

class Stub(types.ModuleType):
    pass

def register():
    root = Stub("sgl_kernel")
    root.early = kernels.rmsnorm
    sys.modules["sgl_kernel"] = root
    sys.modules["sgl_kernel.top_k"] = types.ModuleType("sgl_kernel.top_k")
    for module in (root, sys.modules["sgl_kernel.top_k"]):
        module.late = kernels.rmsnorm
        module.unnamed = lambda: None
""",
        kernels="def rmsnorm(x):\n    return x\n",
    )
    named = {t: h["at"][0]["provided_by"] for t, h in hooks(found).items() if "impl" in h}
    assert named == {
        "sgl_kernel.early": "sgl_kernel",
        "sgl_kernel.late": "sgl_kernel",
        "sgl_kernel.top_k.late": "sgl_kernel",
    }
    assert {h["impl"] for h in hooks(found).values() if "impl" in h} == {"ours.kernels:rmsnorm"}
    # They are parts of stand-ins that are planned: nothing of them is bound.
    assert {h.get("status") for h in hooks(found).values()} == {"planned"}


def test_what_upstream_has_is_imported_whatever_the_plugin_fears(bench: PluginBench) -> None:
    found = bench.adopt("""
try:
    from sglang.srt.layers.attention.registry import register_attention_backend
except ImportError:
    register_attention_backend = None

if register_attention_backend is not None:
    @register_attention_backend("ours")
    def create(runner):
        return None
""")
    assert [h["impl"] for h in hooks(found).values()] == ["ours.install:create"]
    assert left(found) == []


def test_a_module_that_may_not_be_loaded_is_a_condition(bench: PluginBench) -> None:
    found = bench.adopt("""
import sys

def ours(*args):
    return None

def register():
    module = sys.modules.get("sglang.srt.utils.common")
    if module is None:
        return
    module.set_affinity = ours
""")
    assert AFFINITY in hooks(found)
    assert [(x.reason, x.what) for x in found.left if x.reason != "platform"] == [
        ("condition", "holds only where `not (module is None)`")
    ]


def test_top_level_modules_that_the_project_names(bench: PluginBench) -> None:
    named = PROJECT + '[tool.setuptools]\npy-modules = ["sitecustomize"]\n'
    root = write(
        bench.root / "plugin",
        {
            "pyproject.toml": named,
            "ours/__init__.py": "def activate():\n    return None\n",
            "ours/install.py": "def register():\n    return None\n\ndef ours(*args):\n    pass\n",
            "sitecustomize.py": IMPORTS
            + "from ours.install import ours\ncommon.set_affinity = ours\n",
            "other.py": IMPORTS + "common.ENABLED = 1\n",
        },
    )
    assert list(hooks(bench.read(root))) == [AFFINITY]


def test_entries_of_dicts_and_functions_that_extend_lists(bench: PluginBench) -> None:
    found = bench.adopt("""
from sglang.srt.layers.attention.registry import BACKENDS, add_names, note

def ours(runner):
    return None

def register():
    BACKENDS["function"] = ours
    registry.BACKENDS.setdefault("value", 3)
    registry.BACKENDS.update({"text": "gloo", "made": lambda: None})
    add_names(["one", "two"])
    add_names(names=["three"])
    note("four", ours)
""")
    place = "sglang.srt.layers.attention.registry"
    said = [
        (h["at"][0]["target"], h["type"], h.get("key"), h.get("value"), h.get("impl"))
        for h in the_map(found)["hooks"]
    ]
    impl = "ours.install:ours"
    assert sorted(said, key=str) == sorted(
        [
            (f"{place}.BACKENDS", "extend", "function", None, impl),
            (f"{place}.BACKENDS", "extend", "value", 3, None),
            (f"{place}.BACKENDS", "extend", "text", "gloo", None),
            (f"{place}.BACKENDS", "extend", "made", None, None),
            (f"{place}.NAMES", "extend", None, ["one", "two"], None),
            (f"{place}.NAMES", "extend", None, ["three"], None),
            (f"{place}.note", "register", None, ["four"], impl),
        ],
        key=str,
    )
    assert [reason for reason, _, _ in left(found)] == ["implementation"]


def test_what_is_known_of_a_list_that_may_hold_more(bench: PluginBench) -> None:
    found = bench.adopt("""
import os
import sys
import types

NAMES = {"deep_gemm", "flashinfer"}

def names():
    found = sorted(NAMES)
    if os.environ.get("MORE"):
        found.extend(os.environ["MORE"].split(","))
    return found

def register():
    for name in list(names()):
        sys.modules[name] = types.ModuleType(name)
""")
    assert sorted(s["module"] for s in the_map(found)["shims"]) == ["deep_gemm", "flashinfer"]
    assert ("name", "ours/install.py", 18) in left(found)


@pytest.mark.parametrize(
    "body",
    [
        "return importlib.util.find_spec('acme_rt') is not None",
        "import torch, acme_rt",
        "from acme_rt.device import count",
        "importlib.import_module('acme_rt')",
    ],
)
def test_the_probe_is_what_the_entry_point_looks_for(tmp_path: Path, body: str) -> None:
    files = {
        "pyproject.toml": PROJECT,
        "ours/install.py": "def register():\n    import other\n",
        "ours/__init__.py": "import numpy\nfrom .probe import there\n\ndef activate():\n"
        "    return 'ours.P' if there() else None\n",
        "ours/probe.py": f"import importlib.util, os\n\ndef there():\n    {body}\n",
    }
    found = PluginBench(tmp_path).read(write(tmp_path / "plugin", files))
    assert the_map(found)["device"]["probe"]["module"].partition(".")[0] == "acme_rt"


@pytest.mark.parametrize(
    "text",
    [
        "HookRegistry.register(T, ours, HookType['REPLACE'])",
        "HookRegistry.register(T, ours, getattr(HookType, 'REPLACE'))",
        "add = HookRegistry.register\nadd(T, ours, HookType.REPLACE)",
        "common.__setattr__('set_affinity', ours)",
        "type.__setattr__(common, 'set_affinity', ours)",
        "sys.modules['sglang.srt.utils.common'].set_affinity = ours",
        "setattr(inspect.getmodule(common.set_affinity), common.set_affinity.__name__, ours)",
        "Pair = collections.namedtuple('Pair', 'name new')\n"
        "for pair in [Pair('set_affinity', new=ours)]:\n    setattr(common, pair.name, pair.new)",
        "Pair = typing.NamedTuple('Pair', [('name', str), ('new', object)])\n"
        "for name, new in [Pair('set_affinity', ours)]:\n    setattr(common, name, new)",
        "one = types.SimpleNamespace(target=T, hook=ours)\n"
        "HookRegistry.register(one.target, one.hook, HookType.REPLACE)",
        "class Targets(enum.Enum):\n    ONE = T\n"
        "HookRegistry.register(Targets.ONE.value, ours, HookType.REPLACE)",
        "class Targets(str, enum.Enum):\n    ONE = T\n"
        "for one in Targets:\n    HookRegistry.register(one.value, ours, HookType.REPLACE)",
        "def pairs():\n    yield from inner()\ndef inner():\n    yield T, ours\n"
        "for target, new in pairs():\n    HookRegistry.register(target, new, HookType.REPLACE)",
        "queue = [(T, ours)]\nwhile queue:\n    target, new = queue.pop()\n"
        "    HookRegistry.register(target, new, HookType.REPLACE)",
        "class hook:\n    def __init__(self, target):\n        self.target = target\n"
        "    def __call__(self, function):\n"
        "        HookRegistry.register(self.target, function, HookType.REPLACE)\n"
        "        return function\nhook(T)(ours)",
        "globals()['ours_' + 'install']()",
        "match 1:\n    case _ if True:\n        pass\ncommon.set_affinity = ours",
        "wrapt.when_imported('sglang.srt.utils.common')(ours_late)",
        "(target := T) and HookRegistry.register(target, ours, HookType.REPLACE)",
        "HookRegistry.register(*[T, ours], **{'hook_type': HookType.REPLACE})",
        "HookRegistry.register('{}.{}'.format('sglang.srt.utils.common', 'set_affinity'), ours, "
        "hook_type=HookType.REPLACE)",
        "HookRegistry.register('/'.join(T.split('.')).replace('/', '.'), ours, HookType.REPLACE)",
    ],
)
def test_more_ways_to_write_it(bench: PluginBench, text: str) -> None:
    head = (
        "import collections, enum, importlib, inspect, pkgutil, sys, types, typing\nimport wrapt\n"
    )
    ours = (
        "def ours(*args):\n    return None\n\ndef ours_install():\n    common.set_affinity = ours\n"
    )
    late = "def ours_late(module):\n    module.set_affinity = ours\n"
    found = bench.adopt(f"{head}T = '{AFFINITY}'\n\n{ours}\n{late}\n{text}\n")
    assert hooks(found)[AFFINITY]["impl"] == "ours.install:ours"
    assert hooks(found)[AFFINITY]["type"] == "replace"
    reasons = {reason for reason, _, _ in left(found)}
    assert reasons <= ({"condition", "unreached"} if "match" in text else {"unreached"})


def test_parts_that_are_found_by_walking_the_package(bench: PluginBench) -> None:
    part = IMPORTS + "def ours(*args):\n    pass\ndef install():\n    common.{name} = ours\n"
    files = {
        "pyproject.toml": PROJECT.replace("ours.install:register", "ours.install:Plugin"),
        "ours/__init__.py": "def activate():\n    return None\n",
        "ours/install.py": "import importlib, pkgutil\nfrom . import parts\n\nclass Plugin:\n"
        "    def __init__(self):\n"
        "        for found in pkgutil.iter_modules(parts.__path__):\n"
        "            importlib.import_module(f'{parts.__name__}.{found.name}').install()\n",
        "ours/parts/__init__.py": "",
        "ours/parts/one.py": part.format(name="set_affinity"),
        "ours/parts/two.py": part.format(name="ENABLED"),
    }
    found = bench.read(write(bench.root / "plugin", files))
    assert {h["impl"] for h in hooks(found).values()} == {
        "ours.parts.one:ours",
        "ours.parts.two:ours",
    }
    assert left(found) == []


def test_classes_that_register_those_derived_from_them(bench: PluginBench) -> None:
    found = bench.adopt("""
from sglang.srt.runner import GraphRunner

class Replaces:
    def __init_subclass__(cls, target=None, **more):
        super().__init_subclass__(**more)
        HookRegistry.register(target, cls, HookType.REPLACE)

class Runner(Replaces, GraphRunner, target="sglang.srt.runner.GraphRunner"):
    pass
""")
    assert hooks(found)["sglang.srt.runner.GraphRunner"]["impl"] == "ours.install:Runner"

"""Ways in which people write a plugin by hand: nothing is taken wrongly, and nothing is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.evolve.plugin_bench import COMMON, PluginBench, hooks, left, the_map

AFFINITY = f"{COMMON}.set_affinity"
RUNNER = "sglang.srt.runner.GraphRunner"
BEFORE = """\
import enum, functools, importlib, itertools, operator, os, sys
from dataclasses import dataclass, field
import sglang.srt.runner
from sglang.srt.runner import GraphRunner

def ours(gpu_id, tp_size, nnodes=1):
    return None

def other(gpu_id, tp_size, nnodes=1):
    return None
"""


@pytest.fixture
def bench(tmp_path: Path) -> PluginBench:
    return PluginBench(tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        "list(map(one, [('set_affinity', ours)]))",
        "list(itertools.starmap(two, [('set_affinity', ours)]))",
        "for n, f in itertools.product(['set_affinity'], [ours]):\n        setattr(common, n, f)",
        "for n in itertools.chain(['set_affinity'], []):\n        setattr(common, n, ours)",
        "for n in itertools.chain.from_iterable([['set_affinity']]):\n        two(n, ours)",
        "for n in filter(lambda n: n != 'x', ['set_affinity', 'x']):\n        two(n, ours)",
        "[setattr(m, n, ours) for m in (common,) for n in ('set_affinity', 'x') if n != 'x']",
        f"deep('{AFFINITY}', ours)",
        f"operator.attrgetter('srt.utils.common')(sglang).__setattr__('{'set_affinity'}', ours)",
        f"m, _, n = '{AFFINITY}'.rpartition('.')\n    setattr(importlib.import_module(m), n, ours)",
        "walk({'srt': {'utils': {'common': {'set_affinity': ours}}}}, sglang)",
        "vars(common).update(set_affinity=ours)",
        "common.__dict__.update({'set_affinity': ours})",
        "common.__dict__.__setitem__('set_affinity', ours)",
        "operator.setitem(vars(common), 'set_affinity', ours)",
        "TABLE = Table()\n    TABLE['set_affinity'] = ours",
        "table = Table()\n    table += ('set_affinity', ours)",
        "table = Table()\n    table << ('set_affinity', ours)",
        "Auto('set_affinity', ours)",
        "Later('set_affinity', ours)\n    [each.go() for each in Later.all]",
        "Derived(ours).go()",
        "groups = __import__('collections').defaultdict(list)\n"
        "    groups[common].append(('set_affinity', ours))\n"
        "    for m, pairs in groups.items():\n"
        "        for n, f in pairs:\n            setattr(m, n, f)",
        "book = Book()\n    book.pages.append(ours)\n    common.set_affinity = book.pages[0]",
        "with Entered() as (n, f):\n        setattr(common, n, f)",
        "first, *rest = ('x', 'set_affinity', ours)\n    setattr(common, *rest)",
        "common.set_affinity = getattr(sys.modules[__name__], 'our' + 's'[:1])",
        "for n, f in vars(Mixin).items():\n        n[0] != '_' and setattr(common, n, ours)",
        "Parts().run()",
        "common.set_affinity, _ = (ours,) * 2",
        "assert setattr(common, 'set_affinity', ours) is None",
        "module = sys.modules.get(common.__name__) or importlib.import_module(common.__name__)\n"
        "    module.set_affinity = ours",
        "Made = Meta('Made', (), {'set_affinity': ours})\n"
        "    class Made(metaclass=Meta):\n        set_affinity = ours",
        "class Made(Based):\n        set_affinity = ours",
        "for each in Steps:\n        each.apply()",
        "setattr(common, Named().name, ours)",
        "import inspect\n    own = sys.modules[__name__]\n"
        "    for n, f in inspect.getmembers(own, inspect.isfunction):\n"
        "        n == 'ours' and setattr(common, 'set_affinity', f)",
    ],
)
def test_a_replacement_is_found_in_what_people_write(bench: PluginBench, text: str) -> None:
    found = bench.adopt(f"""
{BEFORE}
import sglang

def two(name, new):
    setattr(common, name, new)

def one(pair):
    two(*pair)

def deep(path, new):
    module, leaf = path.rsplit(".", maxsplit=1)
    owner = functools.reduce(getattr, module.split(".")[1:], sglang)
    setattr(owner, leaf, new)

def walk(tree, owner):
    for key, value in tree.items():
        if isinstance(value, dict):
            walk(value, getattr(owner, key))
        else:
            setattr(owner, key, value)

class Table:
    def __setitem__(self, name, new):
        setattr(common, name, new)
    def __iadd__(self, pair):
        self[pair[0]] = pair[1]
        return self
    def __lshift__(self, pair):
        self[pair[0]] = pair[1]

@dataclass
class Step:
    name: str

@dataclass
class Auto(Step):
    new: object
    def __post_init__(self):
        setattr(common, self.name, self.new)

class Later:
    all = []
    def __init__(self, name, new):
        self.name, self.new = name, new
        Later.all.append(self)
    def go(self):
        setattr(common, self.name, self.new)

class Derived(Later):
    def __init__(self, new):
        super().__init__("set_affinity", new)
    def go(self):
        super().go()

class Mixin:
    def set_affinity(self):
        return None

class Parts:
    def run(self):
        for name in dir(self):
            if name.startswith("patch_"):
                getattr(self, name)()
    def patch_one(self):
        common.set_affinity = ours

class Meta(type):
    def __new__(meta, name, bases, held):
        cls = super().__new__(meta, name, bases, held)
        for key, value in held.items():
            if callable(value):
                setattr(common, key, value)
        return cls

class Steps(enum.Enum):
    FIRST = ("set_affinity", ours)
    def apply(self):
        setattr(common, *self.value)

class Named:
    @property
    def name(self):
        return "set_" + "affinity"

class Based(metaclass=Meta):
    pass

@dataclass
class Book:
    pages: list = field(default_factory=list)

class Entered:
    def __enter__(self):
        return "set_affinity", ours
    def __exit__(self, *error):
        return None

def register():
    {text}
""")
    assert {t: h.get("impl") for t, h in hooks(found).items()} == {AFFINITY: "ours.install:ours"}
    assert hooks(found)[AFFINITY].get("status") is None
    assert {reason for reason, _, _ in left(found)} <= {"unreached"}


@pytest.mark.parametrize(
    "text",
    [
        "for name in ('set_affinity',):\n    def ours(*args): return name\n"
        "    setattr(common, name, ours)\ndef ours(): return 2",
        "common.set_affinity = ours\ndef ours(): return 2",
        "common.set_affinity = ours\ndel ours",
        "common.set_affinity = Holder().method",
        "common.set_affinity = functools.lru_cache(maxsize=1)(ours)",
        "common.set_affinity = functools.cache(ours)",
        "common.set_affinity = thing.wrapped('x')(ours)",
        "common.set_affinity = property(ours)",
        "@swallow\ndef lost(*args): return 1\ncommon.set_affinity = KEPT[0]",
        "@swallow\nclass Lost: pass\ncommon.set_affinity = KEPT[0]",
        "@Held\ndef lost(*args): return 1\nlost.bind()",
    ],
)
def test_a_name_that_leads_elsewhere_is_not_taken(bench: PluginBench, text: str) -> None:
    found = bench.adopt(f"""
{BEFORE}
import thing
KEPT = []
def swallow(fn):
    KEPT.append(fn)

class Holder:
    def method(self, *args):
        return None

class Held:
    def __init__(self, fn):
        self.fn = fn
    def bind(self):
        common.set_affinity = self.fn

{text}
def register():
    return None
""")
    hook = hooks(found)[AFFINITY]
    assert hook["status"] == "planned" and "impl" not in hook
    said = [reason for reason, _, _ in left(found)]
    assert [reason for reason in said if reason != "unreached"] == ["implementation"]


@pytest.mark.parametrize(
    ("value", "impl"),
    [
        ("HOLDER.method", "ours.install:HOLDER.method"),
        ("Derived.made", "ours.install:Derived.made"),
        ("Derived.plain", "ours.install:Holder.plain"),
        ("CHOSEN", "ours.install:CHOSEN"),
        ("decorated", "ours.install:decorated"),
    ],
)
def test_methods_and_chosen_names(bench: PluginBench, value: str, impl: str) -> None:
    found = bench.adopt(f"""
{BEFORE}
class Holder:
    def method(self, *args):
        return None
    @classmethod
    def made(cls, *args):
        return None
    @staticmethod
    def plain(*args):
        return None

class Derived(Holder):
    pass

HOLDER = Holder()
if os.environ.get("X"):
    CHOSEN = ours
    def CHOSEN(*args):
        return 1
else:
    def CHOSEN(*args):
        return 2

@functools.lru_cache(maxsize=None)
def decorated(*args):
    return None

def register():
    common.set_affinity = {value}
""")
    assert hooks(found)[AFFINITY]["impl"] == impl
    assert left(found) == []


def test_what_is_put_back_is_bound_for_a_while_only(bench: PluginBench) -> None:
    found = bench.adopt(f"""
{BEFORE}
import contextlib

@contextlib.contextmanager
def patched():
    old = common.set_affinity
    common.set_affinity = ours
    try:
        yield
    finally:
        common.set_affinity = old

class Patched:
    def __enter__(self):
        self.old = GraphRunner.replay
        GraphRunner.replay = other
    def __exit__(self, *error):
        GraphRunner.replay = self.old

def register():
    with patched(), Patched():
        pass
""")
    assert {h["status"] for h in hooks(found).values()} == {"planned"}
    assert set(hooks(found)) == {AFFINITY, f"{RUNNER}.replay"}
    said = [x.what for x in found.left if x.reason == "unsupported"]
    assert all("is bound for a while only" in text for text in said) and len(said) == 2


def test_what_was_patched_before_is_what_is_handed_on(bench: PluginBench) -> None:
    found = bench.adopt(f"""
{BEFORE}
def register():
    before = common.set_affinity
    common.set_affinity = ours
    sglang.srt.runner.f = before
    registry.BACKENDS["a"] = common.set_affinity
    from sglang.srt.utils.common import set_affinity
    registry.BACKENDS["b"] = set_affinity
    common._old = before
""")
    said = [(h["at"][0]["target"].rpartition(".")[2], h["impl"]) for h in the_map(found)["hooks"]]
    assert said == [
        ("set_affinity", "ours.install:ours"),
        ("BACKENDS", "ours.install:ours"),
        ("BACKENDS", "ours.install:ours"),
    ]
    # Under a second name upstream's own would be ours by the time that it is looked up.
    assert [x.line - 16 for x in found.left if x.reason == "unsupported"] == [2, 6]


@pytest.mark.parametrize(
    "text",
    [
        "delattr(common, 'set_affinity')",
        "del registry.BACKENDS['x']",
        "del sys.modules['flashinfer']",
        "sys.modules.pop('flashinfer', None)",
        "os.environ.pop('X', None)",
        "del os.environ['X']",
        "os.unsetenv('X')",
        "common.CHOICES[0] = 'x'",
        "common.CHOICES = ('x',)",
        "common.CHOICES = {'x'}",
        "torch.library.Library('ours', 'DEF').define('f() -> ()')",
        "torch.library.custom_op('ours::f', mutates_args=())(ours)",
        "torch.utils.rename_privateuse1_backend('ours')",
        "transformers.AutoConfig.register('ours', Holder)",
        "gorilla.apply(common, 'set_affinity', ours)",
    ],
)
def test_what_no_document_says_is_listed(bench: PluginBench, text: str) -> None:
    found = bench.adopt(f"""
{BEFORE}
import gorilla, torch, transformers
class Holder:
    pass
def register():
    {text}
""")
    assert left(found) == [("unsupported", "ours/install.py", 19)]
    assert "hooks" not in the_map(found)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("for name, module in sys.modules.items():\n        module.f = ours", "name"),
        ("[setattr(m, 'f', ours) for m in sys.modules.values()]", "name"),
        ("list(map(bind, load()))", "name"),
        ("match load():\n        case [m, n]:\n            setattr(m, n, ours)", "name"),
        ("thing.load().f = ours", "name"),
        ("sys.modules.update(load())", "name"),
        ("common.CHOICES += 'ab'", "implementation"),
        ("GraphRunner.replay = staticmethod(ours)", "unsupported"),
    ],
)
def test_what_is_not_known_is_listed(bench: PluginBench, text: str, reason: str) -> None:
    found = bench.adopt(f"""
{BEFORE}
import thing
def load():
    return thing.load()
def bind(name):
    setattr(common, name, ours)
def register():
    {text}
""")
    assert reason in {r for r, _, line in left(found) if line >= 17}
    assert all(h["status"] == "planned" for h in hooks(found).values())


def test_conditions_inside_expressions_and_matches(bench: PluginBench) -> None:
    found = bench.adopt(f"""
{BEFORE}
def register():
    os.environ.get("A") and setattr(common, "set_affinity", ours)
    setattr(common, "ENABLED", False) if os.environ.get("B") else None
    match os.environ.get("C"):
        case "x":
            return
    GraphRunner.replay = ours
""")
    said = {x.what: x.bindings for x in found.left if x.reason == "condition"}
    assert said == {
        "holds only where `os.environ.get('A')`": ("set-affinity",),
        "holds only where `os.environ.get('B')`": ("enabled",),
        "holds only where `not (os.environ.get('C') matches 'x')`": ("graph-runner-replay",),
    }


def test_a_decorator_that_is_applied_twice_registers_twice(bench: PluginBench) -> None:
    found = bench.adopt(f"""
{BEFORE}
def register():
    keep = registry.register_attention_backend("x")
    keep(ours)
    keep(other)
""")
    said = [h["impl"] for h in the_map(found)["hooks"]]
    assert said == ["ours.install:ours", "ours.install:other"]


def test_entries_by_name(bench: PluginBench) -> None:
    found = bench.adopt(f"""
{BEFORE}
def register():
    registry.BACKENDS.update(a=ours)
    registry.BACKENDS.__setitem__("b", ours)
    operator.setitem(registry.BACKENDS, "c", ours)
""")
    assert [h["key"] for h in the_map(found)["hooks"]] == ["a", "b", "c"]


def test_one_object_under_two_names_is_bound_once(bench: PluginBench) -> None:
    bench.upstream["sglang/srt/again.py"] = "from sglang.srt.utils.common import set_affinity\n"
    found = bench.adopt(f"""
{BEFORE}
import sglang.srt.again as again
def register():
    common.set_affinity = ours
    again.set_affinity = common.set_affinity
""")
    said = {t: h.get("status") for t, h in hooks(found).items()}
    assert said == {AFFINITY: None, "sglang.srt.again.set_affinity": "planned"}
    assert any("is another name of what set-affinity binds" in x.what for x in found.left)


def test_what_two_classes_inherit_is_bound_in_each(bench: PluginBench) -> None:
    bench.upstream["sglang/srt/again.py"] = """\
        from sglang.srt.runner import GraphRunner
        if is_cpu():
            from sglang.srt.cpu import set_affinity
        else:
            from sglang.srt.utils.common import set_affinity
        class One(GraphRunner): ...
        class Two(GraphRunner): ...
        """
    bench.upstream["sglang/srt/cpu.py"] = "def set_affinity(): ...\n"
    found = bench.adopt(f"""
{BEFORE}
import sglang.srt.again as again
def register():
    GraphRunner.replay = ours
    again.One.replay = ours
    again.Two.replay = ours
    common.set_affinity = ours
    again.set_affinity = ours
""")
    assert {h.get("status") for h in hooks(found).values()} == {None}
    assert len(hooks(found)) == 5 and left(found) == []


def test_what_cannot_be_named_is_listed_each_time(bench: PluginBench) -> None:
    found = bench.adopt(f"""
{BEFORE}
def register():
    HookRegistry.register("{AFFINITY}", lambda *args: 1, HookType.BEFORE)
    HookRegistry.register("{AFFINITY}", lambda *args: 2, HookType.BEFORE)
""")
    assert [h["status"] for h in the_map(found)["hooks"]] == ["planned", "planned"]
    assert [reason for reason, _, _ in left(found)] == ["implementation"] * 2


def test_what_is_only_planned_does_not_stand_in_the_way(bench: PluginBench) -> None:
    found = bench.adopt(f"""
{BEFORE}
def register():
    common.set_affinity = lambda *args: 1
    common.set_affinity = ours
""")
    said = [(h.get("status"), h.get("impl")) for h in the_map(found)["hooks"]]
    assert said == [("planned", None), (None, "ours.install:ours")]


def test_hooks_of_every_type_and_of_a_type_that_nobody_knows(bench: PluginBench) -> None:
    found = bench.adopt(f"""
{BEFORE}
def register():
    for kind in HookType:
        HookRegistry.register("{AFFINITY}", ours, kind)
    HookRegistry.register("{RUNNER}.replay", ours, os.environ["KIND"])
""")
    said = [h["type"] for h in the_map(found)["hooks"]]
    assert said == ["before", "after", "around", "replace"]
    assert [reason for reason, _, _ in left(found)] == ["name"]


def test_a_function_that_this_release_does_not_have(bench: PluginBench) -> None:
    found = bench.adopt(f"{BEFORE}\ndef register():\n    common.add_choices(['ours'])\n")
    assert left(found) == [("unsupported", "ours/install.py", 16)]


def test_a_helper_for_upstream_that_nothing_starts(bench: PluginBench) -> None:
    found = bench.adopt(f"{BEFORE}\ndef helper(n, f):\n    setattr(common, n, f)\n")
    assert left(found) == [("unreached", "ours/install.py", 16)]


def test_a_loop_that_may_return_is_a_condition_of_what_follows(bench: PluginBench) -> None:
    found = bench.adopt(f"""
{BEFORE}
def register():
    for name in ("A", "B"):
        if os.environ.get(name) == "break":
            break
        if os.environ.get(name) == "return":
            return
    common.set_affinity = ours
""")
    said = {x.what: x.bindings for x in found.left if x.reason == "condition"}
    assert said == {"holds only where `not (os.environ.get(name) == 'return')`": ("set-affinity",)}

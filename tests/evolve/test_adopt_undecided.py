"""What a plugin leaves open is listed where it stands, with what hangs on it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.evolve.plugin_bench import (
    COMMON,
    PluginBench,
    hooks,
    left,
    the_map,
)

AFFINITY = f"{COMMON}.set_affinity"


@pytest.fixture
def bench(tmp_path: Path) -> PluginBench:
    return PluginBench(tmp_path)


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("HookRegistry.register(os.environ['X'], ours, HookType.REPLACE)", "name"),
        ("setattr(common, os.environ['X'], ours)", "name"),
        ("importlib.import_module(os.environ['X']).f = ours", "name"),
        ("getattr(common, os.environ['X']).f = ours", "name"),
        ("common.set_affinity = lambda *args: None", "implementation"),
        ("common.set_affinity = functools.partial(ours, 1)", "implementation"),
        ("common.set_affinity = make()", "implementation"),
        ("common.brand_new = 1", "unsupported"),
        ("del common.set_affinity", "unsupported"),
        ("common.CHOICES.remove('triton')", "unsupported"),
        ("registry.BACKENDS[ours] = ours", "unsupported"),
        ("registry.register_second(name='x', fn=ours)", "unsupported"),
        ("registry.register_handler(1, ours, 'x')", "unsupported"),
        ("exec(os.environ['X'])", "unsupported"),
        ("sys.meta_path.insert(0, ours)", "unsupported"),
        ("common.set_affinity().attribute = ours", "unsupported"),
        ("os.getcwd = ours", "unsupported"),
        ("sys.modules[os.environ['X']] = ours", "name"),
    ],
)
def test_what_cannot_be_decided_is_listed_where_it_stands(
    bench: PluginBench, statement: str, reason: str
) -> None:
    found = bench.adopt(f"""
import functools, importlib, os, sys

def ours(*args):
    return None

def make():
    def inner(*args):
        return None
    return inner

def register():
    {statement}
""")
    assert left(found) == [(reason, "ours/install.py", 15)]


def test_a_condition_is_listed_with_what_hangs_on_it(bench: PluginBench) -> None:
    found = bench.adopt("""
import os

def ours(*args):
    return None

def other(*args):
    return None

def register():
    if os.environ.get("OFF"):
        return
    common.set_affinity = ours
    if os.environ.get("MORE"):
        common.ENABLED = False
    else:
        common.set_affinity = other
    try:
        common.CHOICES.append("x")
    except ImportError:
        common.CHOICES.append("y")
""")
    said = {x.line: (x.what, x.bindings) for x in found.left if x.reason == "condition"}
    assert said[13] == (
        "holds only where `not (os.environ.get('OFF'))`",
        ("set-affinity", "enabled", "set-affinity-2", "choices", "choices-2"),
    )
    assert said[22][0] == "holds only where `except ImportError`"
    again = next(h for h in the_map(found)["hooks"] if h["id"] == "set-affinity-2")
    assert again["status"] == "planned" and again["impl"] == "ours.install:other"


def test_what_nothing_calls_is_planned_and_listed(bench: PluginBench) -> None:
    found = bench.adopt("""
def ours(*args):
    return None

def forgotten():
    common.set_affinity = ours

def helper(name):
    setattr(common, name, ours)

def register():
    return None
""")
    assert hooks(found)[AFFINITY]["status"] == "planned"
    assert [(reason, line) for reason, _, line in left(found)] == [("name", 11), ("unreached", 8)]


def test_a_helper_names_the_call_that_it_was_for(bench: PluginBench) -> None:
    found = bench.adopt("""
import os

def ours(*args):
    return None

def helper(name):
    setattr(common, name, ours)

def register():
    helper("set_affinity")
    helper(os.environ["X"])
""")
    assert hooks(found)[AFFINITY]["why"] == "stated in ours/install.py:10, for ours/install.py:13"
    assert [x.what for x in found.left if x.reason == "name"] == [
        "the target is made at run time: setattr(common, name, ours), for ours/install.py:14"
    ]


@pytest.mark.parametrize(
    ("cls", "method"),
    [
        ("Deco", "def __class_getitem__(cls, name):"),
        ("Deco", "@classmethod\n    def __class_getitem__(cls, name):"),
        ("Deco(type)", "def __getitem__(cls, name):"),
    ],
)
def test_a_decorator_by_subscript_of_a_class_is_followed(
    bench: PluginBench, cls: str, method: str
) -> None:
    found = bench.adopt(f"""
import os

class {cls}:
    {method}
        def decorator(fn):
            setattr(common, name, fn)
            return fn
        return decorator

class Patch({"metaclass=" if "type" in cls else ""}Deco):
    pass

@Patch["set_affinity"]
def ours(*args):
    return None

@Patch[os.environ["X"]]
def other(*args):
    return None
""")
    assert hooks(found)[AFFINITY]["impl"] == "ours.install:ours"
    assert [reason for reason, _, _ in left(found)] == ["name"]


def test_what_runs_where_nothing_was_raised_has_a_condition(bench: PluginBench) -> None:
    found = bench.adopt("""
def ours(*args):
    return None

try:
    import torch_x
except (ImportError, OSError):
    pass
except ValueError:
    pass
else:
    common.set_affinity = ours
""")
    assert [(x.line, x.what, x.bindings) for x in found.left if x.reason == "condition"] == [
        (7, "holds only where `no (ImportError, OSError) or ValueError`", ("set-affinity",))
    ]
    assert "status" not in hooks(found)[AFFINITY]


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("import torch_x\n    except ImportError:\n        return", 10, "no ImportError"),
        (
            "import torch_x\n        return\n    except ImportError:\n        pass",
            8,
            "except ImportError",
        ),
        (
            "import torch_x\n    except ImportError:\n        pass\n    else:\n        return",
            8,
            "except ImportError",
        ),
    ],
)
def test_what_a_try_may_keep_from_happening_has_a_condition(
    bench: PluginBench, text: str, line: int, what: str
) -> None:
    """Whichever way leaves the function: what follows is read, and what it hangs on is listed."""
    found = bench.adopt(f"""def ours(*args):
    return None

def install():
    try:
        {text}
    finally:
        common.other = 1
    common.set_affinity = ours

install()
""")
    said = [(x.line, x.what) for x in found.left if "set-affinity" in x.bindings]
    assert said == [(line, f"holds only where `{what}`")]
    assert AFFINITY in hooks(found)
    assert not [
        x for x in found.left if x.reason == "condition" and x.bindings != ("set-affinity",)
    ]


def test_a_try_that_always_leaves_ends_the_function(bench: PluginBench) -> None:
    found = bench.adopt("""
def ours(*args):
    return None

def install():
    try:
        return 1
    except ImportError:
        return 2
    common.set_affinity = ours

install()
""")
    assert AFFINITY not in hooks(found)

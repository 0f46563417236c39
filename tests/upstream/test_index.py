"""The index of made-up releases: what is defined, imported, derived and used where."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from kunlun_adapt.upstream import CallForm, Index, Resolver

Files = Mapping[str, str]

MATHS = """\
    LIMIT = 8
    OTHER = LIMIT

    def scale(x, factor=1, *, out=None):
        '''Scale.'''
        return x * factor

    class Base:
        size: int = 1

        def run(self, x):
            return self.step(x)

        def step(self, x):
            return x

    class Tool(Base):
        def step(self, x):
            return scale(x, 2)

    stretch = scale
    """
KERNELS = """\
    import triton

    @triton.jit
    def inner(x):
        pass

    @triton.jit
    def outer(x):
        inner(x)

    def go(x):
        outer[(1,)](x, x, N=4)
    """


@pytest.fixture
def index(resolver: Callable[[Files], Resolver]) -> Callable[..., Index]:
    """The index of a release with `maths` and the given modules below `sglang.srt`."""

    def make(**modules: str) -> Index:
        files = {f"sglang/srt/{name}.py": text for name, text in modules.items()}
        return resolver({"sglang/srt/maths.py": MATHS, **files}).index

    return make


def test_definitions_are_found_by_their_last_name(index: Callable[..., Index]) -> None:
    found = index(more="def step(a):\n    pass\n").definitions("step")
    assert [d.path for d in found] == [
        "sglang.srt.maths.Base.step",
        "sglang.srt.maths.Tool.step",
        "sglang.srt.more.step",
    ]
    assert [d.kind for d in found] == ["method", "method", "function"]
    assert [d.signature for d in found] == ["(self, x)", "(self, x)", "(a)"]


def test_a_definition_says_what_its_text_says(index: Callable[..., Index]) -> None:
    text = """\
        from functools import cache

        if is_hip():
            @cache
            def pick(a, /, b=(1, 2), *rest, c: int = 3, **more):
                return a
        """
    (found,) = index(more=text).definitions("pick")
    assert found.kind == "cached_function"
    assert found.decorators == ("cache",)
    assert found.guard == "is_hip()"
    assert found.signature == "(a, /, b=(1, 2), *rest, c=3, **more)"
    assert found.location.line == 5


def test_bodies_are_the_same_whatever_their_names_comments_and_docstrings(
    index: Callable[..., Index],
) -> None:
    made = index(more="def other(x, factor):\n    # as above\n    return (x *\n        factor)\n")
    (scale,) = made.definitions("scale")
    paths = [d.path for d in made.by_fingerprint(scale.fingerprint)]
    assert paths == ["sglang.srt.maths.scale", "sglang.srt.more.other"]
    assert made.by_fingerprint("not hexadecimal") == ()


def test_importers_are_found_under_every_name(index: Callable[..., Index]) -> None:
    made = index(
        plain="from sglang.srt.maths import scale\n",
        renamed="from sglang.srt.plain import scale as enlarge\n",
        third="from sglang.srt.renamed import enlarge\n",
        star="from sglang.srt.plain import *\n",
        again="from sglang.srt.star import *\n",
        alias="from sglang.srt.maths import stretch\n",
        inside="def go():\n    from sglang.srt.maths import scale\n    return scale\n",
        hidden="if TYPE_CHECKING:\n    from sglang.srt.maths import scale\n",
        guarded="if is_hip():\n    from .maths import scale\n",
        either="if is_hip():\n    def go():\n        if a and b or c:\n            if d:\n"
        "                from .maths import scale\n",
        namesake="from other import scale\n",
    )
    found = {
        (i.module.rpartition(".")[2], i.name): i for i in made.importers("sglang.srt.maths.scale")
    }
    assert sorted(found) == [
        ("again", "scale"),
        ("alias", "stretch"),
        ("either", "scale"),
        ("guarded", "scale"),
        ("hidden", "scale"),
        ("inside", "scale"),
        ("plain", "scale"),
        ("renamed", "enlarge"),
        ("star", "scale"),
        ("third", "enlarge"),
    ]
    assert found["inside", "scale"].scope == "go"
    assert found["hidden", "scale"].type_checking
    assert found["guarded", "scale"].guard == "is_hip()"
    assert found["either", "scale"].guard == "(a and b or c) and d"
    assert found["renamed", "enlarge"].path == "sglang.srt.plain.scale"
    assert made.importers("sglang.srt.third.enlarge") == made.importers("sglang.srt.maths.scale")
    assert made.importers("sglang.srt.maths.Tool.step") == ()
    assert made.importers("sglang.srt.nowhere.scale") == ()


def test_the_importers_of_a_module(index: Callable[..., Index]) -> None:
    made = index(one="from sglang.srt import maths\n", two="import sglang.srt.maths as m\n")
    found = made.importers("sglang.srt.maths")
    assert [(i.module, i.name) for i in found] == [
        ("sglang.srt.one", "maths"),
        ("sglang.srt.two", "m"),
    ]


def test_subclasses_near_and_far(index: Callable[..., Index]) -> None:
    made = index(
        more="from sglang.srt.maths import Tool as T\n\nclass Far(T[int]):\n    pass\n",
        other="class Base:\n    pass\n\nclass Not(Base):\n    pass\n",
    )
    assert [d.path for d in made.subclasses("sglang.srt.maths.Base")] == [
        "sglang.srt.maths.Tool",
        "sglang.srt.more.Far",
    ]
    assert made.subclasses("sglang.srt.maths.scale") == ()


def test_what_a_class_defines_itself(index: Callable[..., Index]) -> None:
    made = index(more="from sglang.srt.maths import Tool\n\nTool.later = 1\n")
    found = [d.qualname for d in made.defined_in("sglang.srt.maths")]
    assert [name for name in found if name.startswith("Base.")] == [
        "Base.size",
        "Base.run",
        "Base.step",
    ]


USERS = """\
    import functools
    from sglang.srt.maths import scale
    from sglang.srt import maths

    def go(x, scale_by=None):
        scale(x, 2, out=None)
        maths.scale(*x)
        return [scale]

    def shadow(scale):
        scale(1)

    def taken():
        from other import scale
        scale(1)

    HELD = {"a": scale}
    HALF = functools.partial(scale, 1)

    @scale
    def decorated(f=scale, g: scale = 1):
        pass

    class Holder:
        pick = scale
    """


def test_each_use_has_its_role(index: Callable[..., Index]) -> None:
    found = index(users=USERS).references("sglang.srt.maths.scale")
    said = [
        (r.kind, r.scope, r.location.line, r.on_import) for r in found if r.module.endswith("users")
    ]
    assert said == [
        ("call", "go", 6, False),
        ("call", "go", 7, False),
        ("container", "go", 8, False),
        ("container", "", 17, True),
        ("partial", "", 18, True),
        ("decorator", "", 20, True),
        ("default", "", 21, True),
        ("annotation", "", 21, True),
        ("class_attribute", "Holder", 25, True),
    ]
    assert found[0].module == "sglang.srt.maths"


def test_how_a_call_passes_its_arguments(index: Callable[..., Index]) -> None:
    found = index(users=USERS).references("sglang.srt.maths.scale")
    first, second = (r.call for r in found if r.kind == "call" and r.scope == "go")
    assert first == CallForm(2, ("out",), arguments=("x", "2", "None"))
    assert second == CallForm(0, star=True)


def test_launches_are_told_from_calls(index: Callable[..., Index]) -> None:
    made = index(kernels=KERNELS)
    (launch,) = made.references("sglang.srt.kernels.outer")
    assert launch.kind == "launch" and launch.call is not None and launch.call.grid
    assert (launch.call.positional, launch.call.keywords) == (2, ("N",))
    (call,) = made.references("sglang.srt.kernels.inner")
    assert (call.kind, call.scope) == ("call", "outer")


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("def go(t: Tool):\n    t.step(1)\n", [4]),
        ("def go():\n    t = Tool()\n    t.step(1)\n", [5]),
        ("def go(t: 'Tool | None'):\n    t.step(1)\n", [4]),
        ("class Has:\n    def __init__(self):\n        self.t = Tool()\n    def go(self):\n"
         "        self.t.step(1)\n", [7]),
        ("class Below(Tool):\n    def step(self, x):\n        return super().step(x)\n", [5]),
        ("def go(t):\n    Tool.step(t, 1)\n", [4]),
        ("def go():\n    Tool().step(1)\n", [4]),
        ("def go(t):\n    t.step(1)\n", []),
        ("class Other:\n    def step(self):\n        self.step()\n", []),
    ],
)  # fmt: skip
def test_calls_that_may_reach_a_method(
    index: Callable[..., Index], text: str, lines: list[int]
) -> None:
    stranger = "class Stranger:\n    def step(self):\n        pass\n"
    users = f"from sglang.srt.maths import Tool\n\n{text}"
    made = index(users=users, stranger=stranger)
    found = made.method_calls("sglang.srt.maths.Tool", "step")
    here = [r.location.line for r in found if r.module.endswith("users")]
    assert here == lines
    # The base's own call on `self` may be one of a Tool.
    assert ("sglang.srt.maths", "Base.run") in [(r.module, r.scope) for r in found]


def test_a_name_that_no_other_class_has_reaches_its_method(index: Callable[..., Index]) -> None:
    users = "def go(anything):\n    anything.step(1)\n    torch.step(1)\n"
    made = index(users=f"import torch\n\n{users}")
    found = made.method_calls("sglang.srt.maths.Tool", "step")
    assert [r.location.line for r in found if r.module.endswith("users")] == [4]


def test_what_importing_a_module_loads(index: Callable[..., Index]) -> None:
    made = index(
        entry="import sglang.srt.one\nfrom sglang.srt import two\nfrom sglang.srt.three import f\n",
        one="def later():\n    import sglang.srt.never\n",
        two="if TYPE_CHECKING:\n    import sglang.srt.never\n"
        "if is_hip():\n    import sglang.srt.amd\n",
        three="f = 1\n",
        never="",
        amd="",
    )
    loaded = {m for m in made.loaded_with("sglang.srt.entry") if m.count(".") == 2}
    assert loaded == {f"sglang.srt.{name}" for name in ("entry", "one", "two", "three")}


def test_every_name_is_listed_once(index: Callable[..., Index]) -> None:
    made = index(one="def twice(): ...\n", two="class A:\n    def twice(self): ...\n")
    assert made.names().count("twice") == 1
    assert all(made.definitions(name) for name in made.names())


def test_a_module_that_cannot_be_parsed_has_no_table(index: Callable[..., Index]) -> None:
    made = index(broken="def (:\n", nested="x = " + "(" * 300 + ")" * 300 + "\n")
    assert "sglang.srt.broken" in made.modules
    assert made.table("sglang.srt.broken") is None
    assert made.table("sglang.srt.nested") is None  # deeper than Python parses
    assert made.definitions("scale")
    assert made.references("sglang.srt.broken.f") == ()


def test_names_are_followed_without_reading_a_module_again(index: Callable[..., Index]) -> None:
    made = index(plain="from sglang.srt.maths import scale\n")
    symbol = made.resolver.resolve("sglang.srt.plain.scale")
    assert symbol.path == "sglang.srt.plain.scale"
    table = made.table("sglang.srt.maths")
    assert table is not None and callable(table.source)
    binding = table.scope.bindings["scale"][0]
    assert table.text(binding).lstrip().startswith("def scale(x, factor=1")

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from kunlun_adapt.upstream import Facts, Missing, Resolver, Symbol

Make = Callable[[Mapping[str, str]], Resolver]


def _symbol(resolver: Resolver, path: str) -> Symbol:
    found = resolver.resolve(path)
    assert isinstance(found, Symbol), found
    return found


def _missing(resolver: Resolver, path: str) -> Missing:
    found = resolver.resolve(path)
    assert isinstance(found, Missing), found
    return found


def test_namespace_packages_and_modules(resolver: Make) -> None:
    facts: Facts = resolver({"sglang/srt/deep/m.py": "def f(a): ...\n"})
    found = facts.resolve("sglang.srt.deep.m.f")
    assert isinstance(found, Symbol)
    assert (found.kind, str(found.location)) == ("function", "sglang/srt/deep/m.py:1")
    assert facts.version == "0.5.19"
    for path in ("sglang.srt", "sglang.srt.deep.m", "sglang"):
        module = facts.resolve(path)
        assert isinstance(module, Symbol) and module.kind == "module"


def test_reexports_lead_to_the_definition(resolver: Make) -> None:
    facts = resolver(
        {
            "sglang/a/__init__.py": "from sglang.a.b import g as f\n",
            "sglang/a/b.py": "\nfrom .c import h as g\n",
            "sglang/a/c.py": "def h(x): ...\n",
        }
    )
    found = _symbol(facts, "sglang.a.f")
    assert found.resolved == "sglang.a.c.h"
    assert [str(place) for place in found.via] == ["sglang/a/__init__.py:1", "sglang/a/b.py:2"]
    assert found.path == "sglang.a.f"


def test_a_dangling_reexport_is_refused_at_its_line(resolver: Make) -> None:
    facts = resolver(
        {
            "sglang/a.py": "from sglang.b import f, g\nfrom sglang.gone import h\n",
            "sglang/b.py": "\nfrom sglang.c import g\n",
            "sglang/c.py": "",
        }
    )
    assert _missing(facts, "sglang.a.f").reason == "dangling_reexport"
    assert str(_missing(facts, "sglang.a.f").at) == "sglang/a.py:1"
    assert str(_missing(facts, "sglang.a.g").at) == "sglang/b.py:2"
    assert str(_missing(facts, "sglang.a.h").at) == "sglang/a.py:2"
    assert "does not exist" in _missing(facts, "sglang.a.h").detail


def test_imports_in_a_circle_end(resolver: Make) -> None:
    facts = resolver(
        {"sglang/a.py": "from sglang.b import f", "sglang/b.py": "from sglang.a import f"}
    )
    assert _missing(facts, "sglang.a.f").reason == "dangling_reexport"


def test_a_fallback_import_serves_where_the_first_dangles(resolver: Make) -> None:
    facts = resolver(
        {
            "sglang/a.py": """
                try:
                    from sglang.new import f
                except ImportError:
                    from sglang.old import f
            """,
            "sglang/old.py": "def f(): ...",
        }
    )
    found = _symbol(facts, "sglang.a.f")
    assert (found.resolved, found.guard) == ("sglang.old.f", "except ImportError")


def test_type_checking_imports_do_not_count(resolver: Make) -> None:
    facts = resolver(
        {
            "sglang/a.py": """
                from typing import TYPE_CHECKING
                if TYPE_CHECKING:
                    from sglang.b import T
            """,
            "sglang/b.py": "class T: ...",
            "sglang/c.py": "from sglang.a import T",
        }
    )
    found = _missing(facts, "sglang.a.T")
    assert (found.reason, str(found.at)) == ("type_checking_only", "sglang/a.py:4")
    assert _missing(facts, "sglang.c.T").reason == "dangling_reexport"


def test_every_guarded_variant_is_kept(resolver: Make) -> None:
    facts = resolver(
        {
            "sglang/a.py": """
                if is_cuda:
                    def f(x): ...
                elif is_hip:
                    def f(x, y): ...
                else:
                    from vendor import f
            """
        }
    )
    found = _symbol(facts, "sglang.a.f")
    assert (found.signature and found.signature.text(), found.guard) == ("(x)", "is_cuda")
    assert [(v.kind, v.guard, v.signature and v.signature.text()) for v in found.variants] == [
        ("function", "not is_cuda and is_hip", "(x, y)"),
        ("external", "not is_cuda and not is_hip", None),
    ]


def test_a_branch_for_another_vendor_is_not_the_first_choice(resolver: Make) -> None:
    facts = resolver(
        {
            "sglang/a.py": """
                if _is_npu and ready:
                    def f(npu): ...
                else:
                    def f(rest): ...
                if _is_hip or _is_cuda:
                    def g(both): ...
                else:
                    def g(rest): ...
                if not is_cpu():
                    def h(device): ...
                else:
                    def h(cpu): ...
                if _is_cpu and _has_amx:
                    def k(cpu): ...
                else:
                    def k(rest): ...
            """
        }
    )
    texts = {}
    for name in "fghk":
        found = _symbol(facts, f"sglang.a.{name}")
        texts[name] = found.signature.text() if found.signature else None
        assert len(found.variants) == 1
    assert texts == {"f": "(rest)", "g": "(both)", "h": "(device)", "k": "(rest)"}


def test_the_last_unguarded_definition_wins_and_none_stands_back(resolver: Make) -> None:
    facts = resolver(
        {
            "sglang/a.py": """
                def f(): ...
                def f(x): ...
                g = None
                if cond:
                    def g(x): ...
                try:
                    from vendor import h
                except ImportError:
                    h = None
            """
        }
    )
    assert _symbol(facts, "sglang.a.f").location.line == 3
    assert not _symbol(facts, "sglang.a.f").variants
    assert _symbol(facts, "sglang.a.g").kind == "function"
    assert _symbol(facts, "sglang.a.h").kind == "external"
    assert _symbol(facts, "sglang.a.h").resolved == "vendor.h"
    assert str(_symbol(facts, "sglang.a.h").location) == "sglang/a.py:8"


def test_overloads_and_setters_are_no_variants(resolver: Make) -> None:
    facts = resolver(
        {
            "sglang/a.py": """
                @overload
                def f(x: int): ...
                @typing.overload
                def f(x: str): ...
                def f(x, y=1): ...
                class C:
                    @property
                    def p(self): ...
                    @p.setter
                    def p(self, value): ...
            """
        }
    )
    found = _symbol(facts, "sglang.a.f")
    assert found.signature is not None and found.signature.text() == "(x, y=1)"
    assert not found.variants
    assert _symbol(facts, "sglang.a.C.p").kind == "property"
    assert not _symbol(facts, "sglang.a.C.p").variants


def test_wildcards_follow_all_and_the_underscore_rule(resolver: Make) -> None:
    facts = resolver(
        {
            "sglang/a.py": "from sglang.b import *\nfrom sglang.c import *\nfrom vendor import *\n",
            "sglang/b.py": "__all__ = ['f', '_g']\ndef f(): ...\ndef _g(): ...\ndef h(): ...\n",
            "sglang/c.py": "def k(): ...\ndef _k(): ...\nfrom sglang.d import *\n",
            "sglang/d.py": "def deep(): ...\n",
        }
    )
    assert _symbol(facts, "sglang.a.f").resolved == "sglang.b.f"
    assert _symbol(facts, "sglang.a._g").resolved == "sglang.b._g"
    assert _symbol(facts, "sglang.a.k").resolved == "sglang.c.k"
    assert _symbol(facts, "sglang.a.deep").resolved == "sglang.d.deep"
    assert _missing(facts, "sglang.a.h").reason == "symbol_missing"
    assert _missing(facts, "sglang.a._k").reason == "symbol_missing"


def test_module_getattr_as_chain_and_as_table(resolver: Make) -> None:
    facts = resolver(
        {
            "sglang/p/__init__.py": """
                _TABLE = {"f": "impl", "g": ("sglang.p.impl", "real"), "gone": "impl"}
                current: int
                def __getattr__(name):
                    if name == "h":
                        from .impl import f as h
                        return h
                    if name in ("one", "two"):
                        return compute(name)
                    if name == "current":
                        return find()
                    return load(_TABLE[name])
            """,
            "sglang/p/impl.py": "def f(): ...\ndef real(x): ...\n",
        }
    )
    assert _symbol(facts, "sglang.p.f").resolved == "sglang.p.impl.f"
    assert _symbol(facts, "sglang.p.g").resolved == "sglang.p.impl.real"
    assert _symbol(facts, "sglang.p.h").resolved == "sglang.p.impl.f"
    assert _symbol(facts, "sglang.p.two").kind == "lazy"
    assert _symbol(facts, "sglang.p.current").kind == "lazy"
    assert _missing(facts, "sglang.p.gone").reason == "dangling_reexport"
    assert _missing(facts, "sglang.p.other").reason == "symbol_missing"


def test_lazy_import_objects(resolver: Make) -> None:
    facts = resolver(
        {
            "sglang/__init__.py": """
                Engine = LazyImport("sglang.e", "Engine")
                Gone = LazyImport("sglang.e", "Gone")
                Other = LazyImport("vendor", "Other")
            """,
            "sglang/e.py": "class Engine:\n    def __init__(self, a): ...\n",
        }
    )
    found = _symbol(facts, "sglang.Engine")
    assert (found.kind, found.resolved) == ("lazy", "sglang.e.Engine")
    assert found.signature is not None and found.signature.text() == "(a)"
    assert _missing(facts, "sglang.Gone").reason == "dangling_reexport"
    assert _symbol(facts, "sglang.Other").kind == "external"


def test_aliases_and_wrappers(resolver: Make) -> None:
    facts = resolver(
        {
            "sglang/a.py": """
                import sglang.b as b
                def f(x): ...
                g = f
                h = b.k
                f = f
                def w(y): ...
                w = compile(w)
                out = torch.add
                class C:
                    def m(self): ...
                    n = m
            """,
            "sglang/b.py": "def k(): ...",
        }
    )
    assert _symbol(facts, "sglang.a.g").resolved == "sglang.a.f"
    assert _symbol(facts, "sglang.a.f").location.line == 3
    assert _symbol(facts, "sglang.a.h").resolved == "sglang.b.k"
    assert _symbol(facts, "sglang.a.w").kind == "function"
    assert _symbol(facts, "sglang.a.w").decorators == ("compile",)
    assert _symbol(facts, "sglang.a.out").kind == "constant"
    assert _symbol(facts, "sglang.a.C.n").resolved == "sglang.a.C.m"
    assert _symbol(facts, "sglang.a.b.k").resolved == "sglang.b.k"


def test_a_conditional_expression_chooses_between_definitions(resolver: Make) -> None:
    facts = resolver(
        {
            "sglang/a.py": """
                class Base:
                    def run(self): ...
                class Card(Base): ...
                class Other(Base): ...
                class Hip(Base): ...
                Layer = Card if _is_cuda else (Hip if _is_hip or old else Other)
                size = torch.float8 if _is_hip else torch.float16
                number = 1 if _is_hip else 2
            """
        }
    )
    found = _symbol(facts, "sglang.a.Layer")
    assert (found.resolved, found.guard) == ("sglang.a.Card", "_is_cuda")
    assert [(v.resolved, v.guard) for v in found.variants] == [
        ("sglang.a.Hip", "not _is_cuda and (_is_hip or old)"),
        ("sglang.a.Other", "not _is_cuda and not (_is_hip or old)"),
    ]
    assert _symbol(facts, "sglang.a.Layer.run").inherited_from == "sglang.a.Base"
    assert _symbol(facts, "sglang.a.size").guard is None
    assert _symbol(facts, "sglang.a.number").kind == "constant"


def test_inheritance_crosses_modules(resolver: Make) -> None:
    facts = resolver(
        {
            "sglang/a.py": """
                from sglang.b import Base
                class Sub(Base, vendor.Thing):
                    def own(self): ...
                Sub.late = 1
            """,
            "sglang/b.py": """
                class Root:
                    flag: bool = True
                    def who(self): ...
                class Left(Root):
                    def who(self): ...
                class Right(Root):
                    def who(self): ...
                    def only(self): ...
                class Base(Left, Right): ...
            """,
        }
    )
    assert _symbol(facts, "sglang.a.Sub").bases == ("sglang.b.Base", "vendor.Thing")
    found = _symbol(facts, "sglang.a.Sub.who")
    assert (found.inherited_from, found.resolved) == ("sglang.b.Left", "sglang.b.Left.who")
    assert _symbol(facts, "sglang.a.Sub.only").inherited_from == "sglang.b.Right"
    assert _symbol(facts, "sglang.a.Sub.flag").inherited_from == "sglang.b.Root"
    assert _symbol(facts, "sglang.a.Sub.own").inherited_from is None
    assert _symbol(facts, "sglang.a.Sub.late").kind == "attribute"
    lost = _missing(facts, "sglang.a.Sub.nothing")
    assert lost.deepest == "sglang.a.Sub"
    assert "vendor.Thing" in lost.detail
    assert set(facts.members("sglang.a.Sub")) == {"own", "late", "who", "only", "flag"}
    assert facts.members("sglang.a.Sub")["flag"].inherited_from == "sglang.b.Root"
    assert facts.members("sglang.a.nothing") == {}


def test_bases_in_a_circle_end(resolver: Make) -> None:
    facts = resolver({"sglang/a.py": "class A(B): ...\nclass B(A):\n    x = 1\n"})
    assert _symbol(facts, "sglang.a.A.x").value == "1"
    assert _missing(facts, "sglang.a.A.y").reason == "symbol_missing"


def test_defstruct_rebinds_the_class_and_keeps_its_members(resolver: Make) -> None:
    facts = resolver(
        {
            "sglang/a.py": """
                class Args:
                    def check(self): ...
                Args = msgspec.defstruct("Args", fields, namespace={**vars(Args)})
            """
        }
    )
    found = _symbol(facts, "sglang.a.Args")
    assert (found.kind, found.signature, found.location.line) == ("class", None, 4)
    assert _symbol(facts, "sglang.a.Args.check").kind == "method"


def test_a_struct_takes_over_the_fields_of_the_classes_that_it_is_made_of(resolver: Make) -> None:
    facts = resolver(
        {
            "sglang/a.py": """
                from sglang.b import Model, Cache
                class Args:
                    def check(self): ...
                _PARTS = [Model, Cache]
                _fields = collect(_PARTS)
                Args._PARTS = _PARTS
                Args = msgspec.defstruct("Args", _fields, namespace={**vars(Args)})
                class Plain: ...
                Plain.parts = _PARTS
            """,
            "sglang/b.py": """
                class Model:
                    path: str
                    derived = Derived(fn="x")
                class Cache:
                    page_size: int = 1
            """,
        }
    )
    found = _symbol(facts, "sglang.a.Args.page_size")
    assert (found.kind, found.inherited_from) == ("attribute", "sglang.b.Cache")
    assert found.resolved == "sglang.b.Cache.page_size"
    assert _missing(facts, "sglang.a.Args.derived").reason == "symbol_missing"
    assert set(facts.members("sglang.a.Args")) == {"check", "_PARTS", "path", "page_size"}
    assert _missing(facts, "sglang.a.Plain.path").reason == "symbol_missing"


def test_a_package_name_hides_the_module_of_the_same_name(resolver: Make) -> None:
    facts = resolver(
        {
            "sglang/p/__init__.py": "from sglang.p.f import f\n",
            "sglang/p/f.py": "def f(): ...\ndef other(): ...\n",
        }
    )
    assert _symbol(facts, "sglang.p.f").kind == "function"
    assert _symbol(facts, "sglang.p.f.other").resolved == "sglang.p.f.other"


def test_a_package_may_import_its_own_module(resolver: Make) -> None:
    facts = resolver({"sglang/p/__init__.py": "from . import m\n", "sglang/p/m.py": "x = 1"})
    assert _symbol(facts, "sglang.p.m").kind == "module"
    assert _symbol(facts, "sglang.p.m.x").value == "1"


@pytest.mark.parametrize(
    ("path", "reason", "deepest"),
    [
        ("torch.add", "module_missing", ""),
        ("sglang.srt.gone", "module_missing", "sglang.srt"),
        ("sglang.srt.gone.m.f", "module_missing", "sglang.srt"),
        ("sglang.srt.m.f", "symbol_missing", "sglang.srt.m"),
        ("sglang.srt.m.C.f.g", "symbol_missing", "sglang.srt.m"),
        ("sglang.srt.m.K.f", "symbol_missing", "sglang.srt.m.K"),
        ("sglang.srt.m.v.f", "symbol_missing", "sglang.srt.m.v"),
        ("sglang.srt.bad", "unparsable", "sglang.srt"),
        ("sglang.srt.bad.f", "unparsable", "sglang.srt"),
        ("sglang.srt.fast.f", "unparsable", "sglang.srt"),
        ("sglang.Thing.f", "symbol_missing", "sglang"),
        ("sglang.thing.f", "module_missing", "sglang"),
        ("sglang..f", "symbol_missing", ""),
    ],
)
def test_a_miss_says_why_and_how_far(resolver: Make, path: str, reason: str, deepest: str) -> None:
    facts = resolver(
        {
            "sglang/srt/m.py": "class K: ...\nv = 1\n",
            "sglang/srt/bad.py": "def (:\n",
            "sglang/srt/fast.cpython-311-x86_64-linux-gnu.so": "",
        }
    )
    found = _missing(facts, path)
    assert (found.reason, found.deepest) == (reason, deepest)
    assert found.detail


def test_an_async_generator_is_told_from_a_coroutine(resolver: Make) -> None:
    found = resolver(
        {
            "sglang/a.py": """\
                class Engine:
                    async def stream(self):
                        yield 1

                    async def ask(self):
                        return 1

                    size = 1
            """,
            "sglang/b.py": "from sglang.a import Engine as Renamed\n",
        }
    )
    assert found.is_async_generator("sglang.a.Engine.stream")
    assert found.is_async_generator("sglang.b.Renamed.stream")
    others = ("sglang.a.Engine.ask", "sglang.a.Engine.size", "sglang.a.Engine", "sglang.a")
    assert not any(found.is_async_generator(path) for path in (*others, "sglang.a.none", "torch.x"))


def test_table_is_none_for_what_has_none(resolver: Make) -> None:
    facts = resolver({"sglang/srt/m.py": "x = 1", "sglang/srt/bad.py": "def (:"})
    table = facts.table("sglang.srt.m")
    assert table is not None and "x" in table.scope.bindings
    assert facts.table("sglang.srt") is None
    assert facts.table("sglang.srt.bad") is None

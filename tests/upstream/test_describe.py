from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from kunlun_adapt.upstream import Resolver, Symbol

Make = Callable[[Mapping[str, str]], Resolver]

KINDS = """
from triton import jit
import triton
@triton.jit
def k1(x): ...
@triton.autotune(configs=[])
@triton.jit
def k2(x): ...
@jit
def k3(x): ...
@register_custom_op(mutates_args=["x"])
def op(x): ...
@functools.lru_cache(maxsize=1)
def cached(x): ...
@wrapped
def plain(x): ...
async def co(x): ...
CONST = {"a": 1}
Pair = namedtuple("Pair", "a b")
class C:
    attr: int = 1
    def m(self): ...
    async def am(self): ...
    @classmethod
    def cm(cls): ...
    @staticmethod
    def sm(): ...
    @functools.cached_property
    def p(self): ...
"""


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("k1", "triton_kernel"),
        ("k2", "triton_kernel"),
        ("k3", "triton_kernel"),
        ("op", "custom_op"),
        ("cached", "cached_function"),
        ("plain", "function"),
        ("co", "async_function"),
        ("CONST", "constant"),
        ("Pair", "class"),
        ("C", "class"),
        ("C.attr", "attribute"),
        ("C.m", "method"),
        ("C.am", "method"),
        ("C.cm", "classmethod"),
        ("C.sm", "staticmethod"),
        ("C.p", "property"),
        ("triton", "external"),
    ],
)
def test_kinds(resolver: Make, name: str, kind: str) -> None:
    found = resolver({"sglang/a.py": KINDS}).resolve(f"sglang.a.{name}")
    assert isinstance(found, Symbol)
    assert found.kind == kind
    assert found.is_async == (name in ("co", "C.am"))


def test_details_of_a_function_and_a_constant(resolver: Make) -> None:
    facts = resolver({"sglang/a.py": KINDS + "LONG = " + repr("x" * 500) + "\n"})
    kernel, constant, long = (facts.resolve(f"sglang.a.{name}") for name in ("k2", "CONST", "LONG"))
    assert isinstance(kernel, Symbol) and isinstance(constant, Symbol) and isinstance(long, Symbol)
    assert kernel.decorators == ("triton.autotune(configs=[])", "triton.jit")
    assert kernel.location.line == 8 and kernel.qualname == "k2"
    assert constant.value == "{'a': 1}"
    assert long.value is None and long.fingerprint


CONSTRUCTORS = """
import dataclasses, enum, msgspec
from dataclasses import dataclass, field, KW_ONLY
from typing import ClassVar, NamedTuple
class Init:
    def __init__(self, a, b=1): ...
class Inherits(Init): ...
class Empty: ...
class Foreign(torch.nn.Module): ...
@dataclass
class Base:
    a: int
    b: int = 1
    hidden: int = field(init=False)
    shared: ClassVar[int] = 3
@dataclasses.dataclass(frozen=True)
class Data(Base):
    c: list = field(default_factory=list)
    b: int = 2
    _: KW_ONLY
    d: int = dataclasses.field(default=4)
@dataclass(kw_only=True)
class Only:
    a: int
    b: int = field(kw_only=False)
class Named(NamedTuple):
    x: int
    y: int = 0
class Shape(Protocol): ...
class Struct(msgspec.Struct):
    a: int
    b: int = 1
    shared: ClassVar[int] = 3
class Later(Struct, kw_only=True):
    c: list = msgspec.field(default_factory=list)
    d: int
class Again(Struct):
    a: int = 0
"""


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("Init", "(a, b=1)"),
        ("Inherits", "(a, b=1)"),
        ("Empty", "()"),
        ("Foreign", None),
        ("Base", "(a, b=1)"),
        ("Data", "(a, b=2, c=list(), *, d=4)"),
        ("Only", "(b, *, a)"),
        ("Named", "(x, y=0)"),
        ("Shape", None),
        ("Struct", "(a, b=1)"),
        ("Later", "(a, b=1, *, c=list(), d)"),
        ("Again", "(a=0, b=1)"),
    ],
)
def test_how_a_class_is_called(resolver: Make, name: str, text: str | None) -> None:
    found = resolver({"sglang/a.py": CONSTRUCTORS}).resolve(f"sglang.a.{name}")
    assert isinstance(found, Symbol)
    assert (found.signature.text() if found.signature else None) == text

"""What the index says of a release, as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from kunlun_adapt.upstream.symbols import Location, SymbolKind

ReferenceKind = Literal[
    "call",
    "launch",
    "subclass",
    "decorator",
    "default",
    "container",
    "partial",
    "class_attribute",
    "alias",
    "argument",
    "annotation",
    "other",
]


@dataclass(frozen=True, slots=True)
class Definition:
    """One definition in a module or class body.

    `signature` is the text of a function's parameters, None for anything else; `bases` are the
    base classes as the text names them.
    """

    module: str
    qualname: str
    kind: SymbolKind
    location: Location
    signature: str | None = None
    decorators: tuple[str, ...] = ()
    guard: str | None = None
    fingerprint: str = ""
    bases: tuple[str, ...] = ()

    @property
    def path(self) -> str:
        """The dotted path of the definition."""
        return f"{self.module}.{self.qualname}"

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.qualname.rpartition(".")[2]


@dataclass(frozen=True, slots=True)
class Import:
    """One import of an object: `path` as it is spelled there, bound to `name` in `module`.

    `scope` is empty at module level, else the qualified name of the class or function around it.
    """

    module: str
    name: str
    path: str
    location: Location
    guard: str | None = None
    type_checking: bool = False
    scope: str = ""


@dataclass(frozen=True, slots=True)
class CallForm:
    """How a call passes its arguments.

    `grid` tells a launch (`kernel[grid](…)`) from a plain call. `star` and `double_star` say that
    the call unpacks something, so that more may be passed than the text shows.
    """

    positional: int = 0
    keywords: tuple[str, ...] = ()
    star: bool = False
    double_star: bool = False
    grid: bool = False
    arguments: tuple[str, ...] = ()
    """The source text of the positional arguments, then of the keywords' values."""


@dataclass(frozen=True, slots=True)
class Reference:
    """One use of an object; `on_import` tells what runs while the module is imported.

    `within` is the name that holds it: of the container, alias or class attribute, if one is
    bound. `guard` is the condition that it stands under in the module's or class's body.
    `through_class` tells a call that names the class (`Class.method(instance)`).
    """

    kind: ReferenceKind
    module: str
    scope: str
    location: Location
    call: CallForm | None = None
    on_import: bool = False
    within: str = ""
    guard: str | None = None
    through_class: bool = False

"""The bindings of one release: what is bound, how it is spelled there, and what was resolved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from kunlun_adapt.diagnostics import Position
from kunlun_adapt.documents import (
    AdaptationRecipe,
    Bind,
    Document,
    Hook,
    HookAt,
    OperatorRecipe,
    OutOfTreeModel,
    PlatformMap,
    Shim,
    Spelling,
)
from kunlun_adapt.upstream import Missing, Symbol

Kind = Literal["factory", "method", "hook", "kernel", "shim"]
Status = Literal["bound", "planned", "excluded"]
WRAPPING = ("before", "after", "around", "replace")
"""The types of hooks that get upstream's call."""

Value = Literal["class", "text", "flag", "function", "server_args", "upstream"]


@dataclass(frozen=True, slots=True)
class Binding:
    """What every binding has; `target` is the upstream path in this release ("" without one).

    `served` says whether the simulator's server runs it and `served_why` adds to that;
    `status_why` says why it is planned or excluded.
    """

    id: str
    kind: Kind
    family: str
    target: str
    status: Status
    why: str
    required: bool
    claims: str
    position: Position
    served: bool | None = None
    served_why: str | None = None
    status_why: str | None = None


@dataclass(frozen=True, slots=True)
class Member:
    """A member of the platform class: a key of the map and its spelling in this release.

    `value` says what is handed out: a class or function (an implementation path), a text, a flag,
    the server-argument defaults, or an upstream object that the class body names.
    """

    binding: Binding
    key: str
    value: Value
    content: Any
    spelling: Spelling | None
    symbol: Symbol | Missing | None

    @property
    def name(self) -> str:
        """The member's name in this release: a method, a field, or `capabilities.<field>`."""
        if self.spelling is None:
            return ""
        return self.spelling.method or self.spelling.field or ""


@dataclass(frozen=True, slots=True)
class HookBinding:
    """A hook with the place where it binds in this release; `path` leads to it in `document`.

    `readback` is the upstream table in which a `register` hook must show.
    """

    binding: Binding
    document: Document[PlatformMap] | Document[AdaptationRecipe]
    hook: Hook
    at: HookAt
    path: tuple[str | int, ...]
    symbol: Symbol | Missing
    readback: Symbol | Missing | None = None

    @property
    def maps_call(self) -> bool:
        """Whether the implementation reads upstream's call through `args`, not as it comes."""
        return self.hook.type in WRAPPING and self.hook.takes == "call"


@dataclass(frozen=True, slots=True)
class KernelBinding:
    """A place where upstream calls an operator in this release.

    `call` is the upstream callable whose signature the operator is called with: the target itself,
    or for `oot_forward` the class's reference forward.
    """

    binding: Binding
    recipe: Document[OperatorRecipe]
    bind: Bind
    path: tuple[str | int, ...]
    symbol: Symbol | Missing
    call: Symbol | Missing


def bind_groups(recipe: OperatorRecipe) -> dict[str, list[int]]:
    """Return the id of each of an operator's bindings with the indexes of its `binds`.

    A bind without an `id` is called by the last name of its target; those called alike are the
    ranges of one binding.
    """
    groups: dict[str, list[int]] = {}
    for index, bind in enumerate(recipe.binds):
        leaf = bind.id or bind.target.rpartition(".")[2]
        groups.setdefault(f"{recipe.name}/{leaf}", []).append(index)
    return groups


@dataclass(frozen=True, slots=True)
class ShimBinding:
    """A module that must exist before upstream imports it."""

    binding: Binding
    shim: Shim


@dataclass(frozen=True, slots=True)
class ModelBinding:
    """A model class of our own, and the table in which upstream looks up model classes."""

    binding: Binding
    model: OutOfTreeModel
    registry: Symbol | Missing


@dataclass(frozen=True, slots=True)
class WarmUp:
    """The collectives that the hook `binding` runs; `groups` has each with what hands it out."""

    binding: Binding
    bytes: int
    groups: tuple[tuple[str, Symbol | Missing], ...]

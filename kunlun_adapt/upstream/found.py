"""What name look-up finds or loses, and the rules for choosing among several definitions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from kunlun_adapt.upstream import syntax
from kunlun_adapt.upstream.guards import holds
from kunlun_adapt.upstream.module import Binding, ModuleTable, Scope
from kunlun_adapt.upstream.symbols import Location, MissingReason

#: What makes a class by a call; the names are the last part of the called one.
CLASS_FACTORIES = frozenset(
    {"defstruct", "namedtuple", "NamedTuple", "TypedDict", "make_dataclass", "NewType", "type"}
)


@dataclass(frozen=True, slots=True)
class Found:
    """A definition: a module (no binding), a statement, or a name from another distribution.

    `owners` are the classes around the statement, outermost first; `via` are the imports and
    aliases that led here; `others` are further definitions that hold under other guards.
    """

    module: str
    table: ModuleTable | None = None
    binding: Binding | None = None
    owners: tuple[Binding, ...] = ()
    via: tuple[Location, ...] = ()
    guard: str | None = None
    others: tuple[Found, ...] = ()
    external: bool = False
    lazy: bool = False
    wrapper: str | None = None
    inherited_from: str | None = None

    @property
    def qualname(self) -> str:
        """The name inside the module, empty for a module."""
        if self.binding is None:
            return ""
        return ".".join([*(owner.name for owner in self.owners), self.binding.name])

    @property
    def dotted(self) -> str:
        """The full dotted path of the definition."""
        return f"{self.module}.{self.qualname}" if self.binding else self.module

    @property
    def location(self) -> Location:
        """Where the definition stands; for a name from elsewhere, where it is imported."""
        if self.external and self.via:
            return self.via[-1]
        if self.table is None:
            return Location(self.module.replace(".", "/"), 1)
        return Location(self.table.file, self.binding.line if self.binding else 1)

    @property
    def is_class(self) -> bool:
        """Whether the definition is a class with a body to look into."""
        return self.binding is not None and self.binding.kind == "class"


@dataclass(frozen=True, slots=True)
class Lost:
    """Why a name cannot be followed, and the line that is to blame."""

    reason: MissingReason
    at: Location | None = None
    detail: str = ""


def candidates(bound: list[Binding]) -> list[Binding]:
    """The bindings that may hold when code runs, the likeliest first.

    Whatever stands before the last unguarded binding is overwritten. Overloads and the setters
    of a property are not definitions of their own.
    """
    live = [item for item in bound if not item.type_checking]
    live = [item for item in live if not item.overload] or live
    live = [
        item
        for item in live
        if not any(f"{item.name}.{part}" in item.decorators for part in ("setter", "deleter"))
    ]
    valued = [index for index, item in enumerate(live) if item.kind != "annotation"]
    if not valued:
        return live[-1:]
    unguarded = [index for index in valued if live[index].guard is None]
    kept = [live[index] for index in valued if not unguarded or index >= unguarded[-1]]
    return sorted(kept, key=lambda item: item.placeholder)


def preference(found: Found) -> tuple[bool, bool, bool]:
    """What to sort several definitions of one name by; the smallest is the one to speak of.

    A definition in the release says more than a name from elsewhere, both say more than the None
    that stands in for them, and none of it matters in a branch for another vendor's device.
    """
    placeholder = found.binding is not None and found.binding.placeholder
    return placeholder, for_other_device(found.guard), found.external


def for_other_device(guard: str | None) -> bool:
    """Whether a guard asks for a device that is neither CUDA nor passes for it.

    A Kunlun XPU reports as CUDA; what stands under `_is_npu` alone is not what it runs.
    """
    return holds(guard, "cuda") is False


def class_body(found: Found) -> Found | None:
    """The class statement behind a definition, seen through a rebinding such as `defstruct`."""
    if found.is_class:
        return found
    binding, table = found.binding, found.table
    if binding is None or table is None or found.owners:
        return None
    if (binding.call or "").rpartition(".")[2] not in CLASS_FACTORIES:
        return None
    for earlier in reversed(table.scope.bindings.get(binding.name, [])):
        if earlier.kind == "class" and not earlier.type_checking:
            return replace(found, binding=earlier)
    return None


def is_rebuilt(klass: Found) -> bool:
    """Whether the class's name is bound again, to what a call such as `defstruct` makes of it."""
    if klass.table is None or klass.binding is None or klass.owners:
        return False
    return any(
        (item.call or "").rpartition(".")[2] in CLASS_FACTORIES
        for item in klass.table.scope.bindings.get(klass.binding.name, [])
    )


def own_scopes(klass: Found) -> list[Scope]:
    """Where a class's own members are bound: given to it later, then in its body."""
    assert klass.table is not None and klass.binding is not None
    scopes = [klass.table.attached.get(klass.qualname), klass.binding.scope]
    return [scope for scope in scopes if scope is not None]


def is_definition(found: Found) -> bool:
    if found.binding is None or found.lazy:
        return True
    called = (found.binding.call or "").rpartition(".")[2]
    return found.binding.kind in ("function", "class") or called in CLASS_FACTORIES


def is_declared_only(found: Found) -> bool:
    """Whether a module only annotates the name, which binds nothing."""
    return found.binding is not None and not found.owners and found.binding.kind == "annotation"


def through(found: Found, here: Location, guard: str | None) -> Found:
    return replace(
        found, via=(here, *found.via), guard=syntax.joined(guard, found.guard), lazy=found.lazy
    )


def distinct(items: Iterable[Found]) -> list[Found]:
    kept: dict[tuple[str, Location], Found] = {}
    for item in items:
        kept.setdefault((item.dotted, item.location), item)
    return list(kept.values())


def merge(orders: list[list[Found]]) -> list[Found]:
    """C3 linearization; where Python would refuse the bases, their order of appearance."""
    orders = [list(order) for order in orders if order]
    merged: list[Found] = []
    while orders:
        head = next(
            (
                order[0]
                for order in orders
                if not any(_is_in(order[0], other[1:]) for other in orders)
            ),
            orders[0][0],
        )
        merged.append(head)
        orders = [
            rest
            for order in orders
            if (rest := [item for item in order if item.dotted != head.dotted])
        ]
    return merged


def _is_in(found: Found, order: list[Found]) -> bool:
    return any(item.dotted == found.dotted for item in order)

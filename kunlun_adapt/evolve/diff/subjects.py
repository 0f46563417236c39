"""The upstream symbols that a workspace depends on in one release, each under a stable key."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kunlun_adapt.check import Context
from kunlun_adapt.check.targets import Lost, lost, uses
from kunlun_adapt.check.watched import watched
from kunlun_adapt.plan import CAPABILITIES, PLATFORM, PROCESS, Binding
from kunlun_adapt.upstream import Missing, Symbol

Key = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Subject:
    """One symbol that a binding depends on; `role` says for what.

    `lost` tells where it may be when the release does not have it.
    """

    key: Key
    role: str
    path: str
    symbol: Symbol | Missing
    binding: Binding | None
    lost: Lost | None = None


def subjects(context: Context) -> dict[Key, Subject]:
    """Return every symbol of the hooks, the operators, the interface and what they watch."""
    return {item.key: item for item in _subjects(context)}


def bindings_of(context: Context) -> dict[str, Binding]:
    """Return each binding once, as that profile has it which binds the most of it."""
    rank = ("bound", "planned", "excluded")
    found: dict[str, Binding] = {}
    for plan in context.plans:
        for binding in plan.bindings:
            held = found.get(binding.id)
            if held is None or rank.index(binding.status) < rank.index(held.status):
                found[binding.id] = binding
    return found


def _subjects(context: Context) -> Iterator[Subject]:
    known = bindings_of(context)
    gone = {(item.use.position, item.use.key): item for item in lost(context)}
    count: dict[tuple[str, str], int] = {}
    for use in uses(context):
        if use.key == "call":
            continue  # by its key in the interface, below
        id = use.binding or ""
        number = count[id, use.key] = count.get((id, use.key), -1) + 1
        where = gone.get((use.position, use.key))
        key = (id, use.key, str(number))
        yield Subject(key, use.key, use.path, use.symbol, known.get(id), where)
    for kernel in context.kernels:
        # What a class's operator is called with: the forward that ours stands for.
        if isinstance(kernel.call, Symbol) and kernel.call is not kernel.symbol:
            id = kernel.binding.id
            yield Subject((id, "forward", ""), "forward", kernel.call.path, kernel.call, known[id])
    for item in watched(context):
        binding = known.get(item.binding)
        yield Subject((item.binding, "watch", item.path), "watch", item.path, item.symbol, binding)
    # The members of these two are compared one by one.
    apart = (PLATFORM, CAPABILITIES)
    calls = {item.use.path: item for item in lost(context) if item.use.key == "call"}
    for name, symbol in {k: s for plan in context.plans for k, s in plan.names.items()}.items():
        if name in apart:
            continue
        role = PROCESS if name.startswith(f"{PROCESS}.") else "interface"
        yield Subject(("", role, name), role, symbol.path, symbol, None, calls.get(symbol.path))

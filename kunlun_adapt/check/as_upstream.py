"""Whether a hook that takes upstream's arguments as they come takes every call of upstream's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kunlun_adapt.check.impl_calls import ORDERED
from kunlun_adapt.upstream import Parameter, Signature, Symbol

_FIRST = {"around": "the original", "after": "the result"}
"""What HookRegistry passes before upstream's arguments."""


def refused(type: str, symbol: Symbol, ours: Signature) -> Iterator[str]:
    """Yield in words which calls of an upstream function a hook's own parameters cannot take."""
    theirs = symbol.signature
    if theirs is None:
        return
    ordered = [p for p in ours.parameters if p.kind in ORDERED]
    if type in _FIRST:
        if not ordered and not _collects(ours, "var_positional"):
            yield f"there is no parameter for {_FIRST[type]}"
        ordered = ordered[1:]
    passed = [p for p in theirs.parameters if p.kind in ORDERED]
    first = symbol.kind in ("method", "classmethod", "property")
    yield from _by_position(passed, ordered, ours, 1 if first else 0)
    yield from _the_rest(theirs, ours)
    named = [p for p in ours.parameters if p.kind == "keyword_only"]
    for mine in (*ordered[len(passed) :], *named):
        if mine.name not in theirs.names and not mine.has_default:
            yield f"nothing is passed for {mine.name!r}"


def _by_position(
    passed: Sequence[Parameter], ordered: Sequence[Parameter], ours: Signature, receivers: int
) -> Iterator[str]:
    """Compare what may be passed by position, the receiver's name aside."""
    for index, theirs in enumerate(passed):
        if index >= len(ordered):
            if not _collects(ours, "var_positional"):
                yield f"there is no place for {theirs.name!r}, which may be passed by position"
            elif index >= receivers and theirs.kind == "positional" and not _takes(ours, theirs):
                yield f"{theirs.name!r} may be passed by name"
            continue
        mine = ordered[index]
        if index < receivers:
            continue
        by_name = theirs.kind == "positional"
        if by_name and (mine.kind == "positional_only" or mine.name != theirs.name):
            yield f"{theirs.name!r} may be passed by name, and is called {mine.name!r} here"
        if theirs.has_default and not mine.has_default:
            yield f"{theirs.name!r} may be left out, and {mine.name!r} has no default"


def _the_rest(theirs: Signature, ours: Signature) -> Iterator[str]:
    for parameter in theirs.parameters:
        if parameter.kind == "keyword_only" and not _takes(ours, parameter):
            yield f"it does not take {parameter.name!r}"
        if parameter.kind.startswith("var_") and not _collects(ours, parameter.kind):
            yield f"it does not take what upstream's {parameter.name!r} collects"


def _takes(signature: Signature, named: Parameter) -> bool:
    found = signature.parameter(named.name)
    by_name = found is not None and found.kind in ("positional", "keyword_only")
    return by_name or _collects(signature, "var_keyword")


def _collects(signature: Signature, kind: str) -> bool:
    return any(p.kind == kind for p in signature.parameters)

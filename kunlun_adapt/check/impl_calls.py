"""Whether an implementation can take the call that it will get."""

from __future__ import annotations

from collections.abc import Iterator

from kunlun_adapt.check.impl_uses import ImplUse
from kunlun_adapt.upstream import Parameter, Signature

ORDERED = ("positional_only", "positional")


def call_text(use: ImplUse) -> str:
    """Spell the arguments of the call."""
    return ", ".join([*(use.positional or ()), *(f"{k}={k}" for k in use.keywords)])


def wanted(use: ImplUse) -> str:
    """Spell the parameters that would take it."""
    if use.operator and use.keywords:
        return ", ".join([*(use.positional or ()), "*", *use.keywords])
    slash = ["/"] if use.positional and use.keywords else []
    return ", ".join([*(use.positional or ()), *slash, *use.keywords])


def faults(use: ImplUse, signature: Signature) -> Iterator[str]:
    """Yield in words what of the call a signature cannot take."""
    positional = use.positional or ()
    ordered = [p for p in signature.parameters if p.kind in ORDERED]
    kinds = {p.kind for p in signature.parameters}
    count = len(positional)
    if len(ordered) < count and "var_positional" not in kinds:
        yield f"it takes {len(ordered)} positional arguments and gets {count}"
    if use.operator:
        yield from _swapped(positional, ordered)
    filled = {p.name for p in ordered[:count]}
    for name in use.keywords:
        parameter = signature.parameter(name)
        by_name = parameter is not None and parameter.kind in ("positional", "keyword_only")
        if name in filled:
            yield f"{name!r} is passed twice"
        elif not by_name and "var_keyword" not in kinds:
            yield f"it does not take {name!r}"
    for parameter in _unfilled(signature, ordered[:count]):
        if parameter.name not in use.keywords:
            yield f"nothing is passed for {parameter.name!r}"


def _unfilled(signature: Signature, filled: list[Parameter]) -> Iterator[Parameter]:
    for parameter in signature.parameters:
        star = parameter.kind.startswith("var_")
        if not star and not parameter.has_default and parameter not in filled:
            yield parameter


def _swapped(positional: tuple[str, ...], ordered: list[Parameter]) -> Iterator[str]:
    """An argument that lands in a parameter which bears another argument's name is swapped."""
    for name, parameter in zip(positional, ordered, strict=False):
        if parameter.name != name and parameter.name in positional:
            yield f"{name!r} lands in {parameter.name!r}"
            return

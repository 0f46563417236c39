"""KA302: an implementation that cannot take the call that it will get."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kunlun_adapt.check.context import Context
from kunlun_adapt.check.impl_uses import ImplUse, find, impl_uses
from kunlun_adapt.check.implementations import Implementation
from kunlun_adapt.diagnostics import Finding
from kunlun_adapt.upstream import Parameter, Signature

ORDERED = ("positional_only", "positional")


def rule(context: Context) -> Iterable[Finding]:
    """Compare what each implementation takes with what the generated code passes."""
    for use in impl_uses(context):
        if use.positional is None:
            continue
        found = find(context, use.path)
        if not isinstance(found, Implementation) or found.signature is None:
            continue
        faults = list(_faults(use, use.positional, found.signature))
        if faults:
            name = use.path.partition(":")[2]
            yield Finding.of(
                "KA302",
                f"{name}{found.signature.text()} ({found.location}) cannot be called as "
                f"{name}({_call(use)}): {'; '.join(faults)}",
                use.position,
                binding=use.binding,
                suggestion=f"write `def {name}({_wanted(use)}): …`",
            )


def _call(use: ImplUse) -> str:
    return ", ".join([*(use.positional or ()), *(f"{k}={k}" for k in use.keywords)])


def _wanted(use: ImplUse) -> str:
    if use.operator and use.keywords:
        return ", ".join([*(use.positional or ()), "*", *use.keywords])
    slash = ["/"] if use.positional and use.keywords else []
    return ", ".join([*(use.positional or ()), *slash, *use.keywords])


def _faults(use: ImplUse, positional: tuple[str, ...], signature: Signature) -> Iterator[str]:
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

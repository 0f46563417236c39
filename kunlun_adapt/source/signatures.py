"""Upstream signatures as parameter lists of generated functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kunlun_adapt.source.text import identifier, literal, literal_default
from kunlun_adapt.upstream import Parameter, Signature

UNSET = "UNSET"
ANY_VALUE = "$any"
"""In `ignores`, the value of a parameter that may be anything."""


def parameter_parts(signature: Signature) -> tuple[str, ...]:
    """Return each part of the parameter list without annotations, `/` and `*` included.

    A default that is a plain literal is kept; any other default becomes `UNSET`, so that the
    generated code never evaluates upstream's expressions.
    """
    parts: list[str] = []
    parameters = signature.parameters
    previous = None
    starred = False
    for p in parameters:
        if previous == "positional_only" and p.kind != "positional_only":
            parts.append("/")
        if p.kind == "keyword_only" and not starred:
            parts.append("*")
            starred = True
        if p.kind == "var_positional":
            starred = True
            parts.append(f"*{identifier(p.name)}")
        elif p.kind == "var_keyword":
            parts.append(f"**{identifier(p.name)}")
        elif p.has_default:
            parts.append(f"{identifier(p.name)}={default_text(p)}")
        else:
            parts.append(identifier(p.name))
        previous = p.kind
    if previous == "positional_only":
        parts.append("/")
    return tuple(parts)


def default_text(parameter: Parameter) -> str:
    """Return the default as generated code states it."""
    plain, value = literal_default(parameter.default)
    return literal(value) if plain else UNSET


def uses_unset(signature: Signature) -> bool:
    """Tell whether the parameter list names UNSET."""
    return any(p.has_default and not literal_default(p.default)[0] for p in signature.parameters)


def guards(
    ignores: Mapping[str, Any] | Sequence[str], signature: Signature
) -> list[tuple[str, str, str]]:
    """Return (parameter, condition that must not hold, allowed value) for ignored parameters.

    Only the mapping form of `ignores` names values; `$any` in it, and the list form, let any pass.
    """
    if not isinstance(ignores, Mapping):
        return []
    found = []
    for name, allowed in ignores.items():
        parameter = signature.parameter(name)
        if parameter is None or allowed == ANY_VALUE:
            continue
        same = "is not" if allowed is None or isinstance(allowed, bool) else "!="
        condition = f"{identifier(name)} {same} {literal(allowed)}"
        if parameter.has_default and not literal_default(parameter.default)[0]:
            condition = f"{name} is not {UNSET} and {condition}"
        found.append((name, condition, literal(allowed)))
    return found

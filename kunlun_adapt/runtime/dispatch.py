"""What generated dispatch functions call: counters, refusals and settings read once.

Of a tier that is no fallback nothing here runs per call; what counts is in the generated text.
"""

from __future__ import annotations

import importlib
import os
from typing import Any

from kunlun_adapt.runtime import fallbacks, ledger


class CallRefused(RuntimeError):
    """A call that no tier serves, that may not fall back, or passes what may not be ignored."""


def tally(operator: str, tiers: tuple[str, ...]) -> list[int]:
    """Return the counters of an operator's tiers, in order; the ledger reads the same list."""
    return ledger.tally(operator, tiers)


def fell_back(operator: str, tier: str, arguments: dict[str, Any]) -> None:
    """Count a call of a fallback tier by what led there; log and record each reason once.

    Raises CallRefused where the user wants no fallback.
    """
    first = fallbacks.count(operator, tier, arguments)
    if fallbacks.refusing():
        fallbacks.uncount(first)
        raise CallRefused(fallbacks.refused(first, describe(arguments)))


def refuse(binding: str, arguments: dict[str, Any]) -> CallRefused:
    """Return the error for a call that no tier serves."""
    return CallRefused(
        f"kunlun-adapt: {binding}: no tier serves {describe(arguments)}; "
        "see `kunlun-adapt explain` for the tiers, and add one or widen one in the recipe"
    )


def unserved(binding: str, name: str, value: Any, allowed: str) -> CallRefused:
    """Return the error for an argument that may only be ignored with one value."""
    return CallRefused(
        f"kunlun-adapt: {binding}: {name} is {describe_value(value)}, and only {allowed} may be "
        "ignored; map it in `args`, or widen `ignores`"
    )


def require(operator: str, tier: str, ops: tuple[str, ...]) -> None:
    """Check that the vendor ops of a tier exist. Raises LookupError with the remedy."""
    for op in ops:
        if not exists(op):
            raise LookupError(
                f"{operator}: tier {tier} needs {op}, which the vendor runtime does not have; "
                f"install the stack that the map names, or let the tier ask `op.{op}: present`"
            )


def exists(op: str) -> bool:
    """Tell whether a vendor op such as `kunlun_ops.swiglu` or `torch.ops.ns.op` is there."""
    module, _, path = op.partition(".")
    try:
        found: Any = importlib.import_module(module)
        for part in path.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError):
        return False
    return True


def setting(scope: str, name: str) -> Any:
    """Return what a condition reads once: an environment variable, or whether an op exists."""
    if scope == "env":
        given = os.environ.get(name)
        ledger.choose(f"env.{name}", "not set" if given is None else given, "read by conditions")
        return given
    if scope == "op":
        there = exists(name)
        ledger.choose(f"op.{name}", "present" if there else "absent", "asked by conditions")
        return there
    raise LookupError(f"conditions cannot read {scope}.{name}")


def describe(arguments: dict[str, Any]) -> str:
    """Return `x=float16[7, 512], out=None` for a call's arguments; reads no tensor values."""
    return ", ".join(f"{name}={describe_value(value)}" for name, value in arguments.items())


def describe_value(value: Any) -> str:
    shape = getattr(value, "shape", None)
    if shape is not None and hasattr(value, "dtype"):
        return f"{str(value.dtype).removeprefix('torch.')}{list(shape)}"
    text = repr(value)
    return text if len(text) <= 80 else f"{type(value).__name__}"

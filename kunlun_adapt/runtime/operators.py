"""The door to an operator's dispatch function for our own classes."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from kunlun_adapt.runtime import ledger
from kunlun_adapt.runtime.generated import PACKAGE


def operator(name: str) -> Callable[..., Any]:
    """Return the dispatch function of an operator; take it once, at construction.

    Raises LookupError where the plan of this release has no such operator.
    """
    try:
        module = importlib.import_module(f"{PACKAGE}.operators.{name}")
    except ModuleNotFoundError as error:
        raise LookupError(
            f"operator {name!r} is not in the plan of this process; is its recipe's `serves` set?"
        ) from error
    function: Callable[..., Any] = getattr(module, name)
    for entry in ledger.LEDGER.entries.values():
        if entry.id.startswith(f"{name}/") and entry.detail == OWN:
            entry.state = "applied"
    return function


OWN = "taken when our class is made"

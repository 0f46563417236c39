"""The door to an operator's dispatch function for our own classes."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from kunlun_adapt.runtime import ledger
from kunlun_adapt.runtime.first_calls import watched
from kunlun_adapt.runtime.generated import PACKAGE

OWN = "taken when our class is made"


def operator(name: str) -> Callable[..., Any]:
    """Return the dispatch function of an operator; take it once, at construction.

    Raises LookupError where the plan of this release has no such operator.
    """
    module_name = f"{PACKAGE}.operators.{name}"
    absent = f"operator {name!r} is not for our own classes here; is its recipe's `serves` set?"
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        # Anything else that is missing is missing inside the operator, and says so itself.
        if not error.name or not module_name.startswith(error.name):
            raise
        raise LookupError(absent) from error
    function: Callable[..., Any] | None = getattr(module, name, None)
    if function is None:
        raise LookupError(absent)
    for entry in list(ledger.LEDGER.entries.values()):
        if entry.id.startswith(f"{name}/") and entry.detail == OWN:
            entry.state = "applied"
    return watched(name, function)  # type: ignore[no-any-return]

"""The door to an operator's dispatch function for our own classes."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from kunlun_adapt.runtime import ledger
from kunlun_adapt.runtime.first_calls import watched
from kunlun_adapt.runtime.generated import PACKAGE

OWN = "taken when our class is made"


def operator(name: str, serves: str = "") -> Callable[..., Any]:
    """Return the dispatch function of an operator; take it once, at construction.

    `serves` names which entry of the recipe's `serves` the class is for, where there are several.
    Raises LookupError where the plan of this release has no such operator or entry.
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
    binding = name
    entry = _taken(name, serves)
    if entry is not None:
        entry.state, binding = "applied", entry.id
    taken: Callable[..., Any] = watched(binding, function)
    return taken


def _taken(name: str, serves: str) -> ledger.Entry | None:
    """Return the binding that is taken; None where the early door has not been opened at all."""
    entries = list(ledger.LEDGER.entries.values())
    own = {
        e.id.partition("/")[2]: e
        for e in entries
        if e.id.startswith(f"{name}/") and e.detail == OWN
    }
    if serves and serves not in own:
        raise LookupError(f"operator {name!r} does not serve {serves!r}; is it in its `serves`?")
    if len(own) > 1 and not serves:
        raise LookupError(
            f"operator {name!r} serves {', '.join(own)}; say which of them takes it: "
            f"operator({name!r}, serves={next(iter(own))!r})"
        )
    return own[serves] if serves else next(iter(own.values()), None)

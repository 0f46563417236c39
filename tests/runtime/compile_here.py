"""Compiles every dispatch function of this process whole; run as a script by a test.

It prints one JSON object: for each function and call, what went wrong, or "" where nothing did.
"""

from __future__ import annotations

import copy
import importlib
import json
import sys
from pathlib import Path
from types import FunctionType
from typing import Any

import torch

from kunlun_adapt.runtime import ledger
from kunlun_adapt.runtime.generated import PACKAGE
from tests.runtime.bindings_here import digest, plan_of
from tests.runtime.operator_calls import operator_calls, upstream_call

CALLS = 3


def fault(function: FunctionType, operator: str, given: dict[str, Any]) -> str:
    """Return what a compiled function does otherwise than the function itself, or ""."""
    expected = copy.deepcopy(given)
    result = function(**expected)
    counts = ledger.LEDGER.tallies[operator][1]
    before = list(counts)
    torch._dynamo.reset()
    torch._dynamo.config.error_on_recompile = True
    compiled = torch.compile(function, fullgraph=True, backend="aot_eager")
    for _ in range(CALLS):
        mine = copy.deepcopy(given)
        got = compiled(**mine)
        if digest(got) != digest(result):
            return f"it returns {digest(got)} and not {digest(result)}"
        if digest(mine) != digest(expected):
            return "it writes something else"
    served = [after - was for after, was in zip(counts, before, strict=True)]
    return (
        "" if sorted(served)[-1] == sum(served) == CALLS else f"{CALLS} calls counted as {served}"
    )


def main(root: str, release: str) -> None:
    from sglang.srt.platforms import current_platform

    assert type(current_platform).__module__ == f"{PACKAGE}.platform"
    plan = plan_of(Path(root), release)
    calls = operator_calls()
    said = {}
    for recipe in plan.operators:
        operator = recipe.model.name
        module = importlib.import_module(f"{PACKAGE}.operators.{operator}")
        kernels = {
            f"bind_{k.bind.target.rpartition('.')[2]}": k
            for k in plan.kernels
            if k.recipe is recipe
        }
        for name in (operator, *kernels):
            function = getattr(module, name, None)
            for index, values in enumerate(calls[operator] if function is not None else ()):
                kernel = kernels.get(name)
                given = upstream_call(kernel, values) if kernel else values
                try:
                    wrong = fault(function, operator, given)
                except Exception as error:
                    wrong = f"{type(error).__name__}: {str(error)[:300]}"
                said[f"{operator}.{name}[{index}]"] = wrong
    print(json.dumps(said))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])

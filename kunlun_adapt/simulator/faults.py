"""Faults on request: what goes wrong in the simulated device, for tests of what then happens.

How they are asked for is in ``fault_syntax.py``; the environment is read once per process.
"""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from kunlun_adapt.simulator.contract import Contract, dtype_name
from kunlun_adapt.simulator.fault_syntax import VARIABLE, Fault, parse


def active() -> list[dict[str, Any]]:
    """Return the faults of this process for a report: each as text, and how often it fired."""
    return [{"fault": str(fault), "fired": fault.fired} for fault in injected()]


def total_memory() -> int | None:
    """Return how many bytes the simulated device shall report, or None for the host's own."""
    sizes = [int(f.settings["bytes"]) for f in injected() if f.kind == "total_memory"]
    return sizes[0] if sizes else None


def is_missing(op: str) -> bool:
    """Tell whether a fault takes the op away."""
    return any(fault.kind == "missing" and fault.op == op for fault in injected())


@functools.cache
def injected() -> tuple[Fault, ...]:
    """Return the faults that the environment asks for, read once. Raises AdaptError."""
    faults = parse(os.environ.get(VARIABLE, ""))
    if faults:
        os.register_at_fork(after_in_child=lambda: _start_over(faults))
    return faults


def _start_over(faults: tuple[Fault, ...]) -> None:
    for fault in faults:
        fault.seen = fault.fired = 0


def inject(contract: Contract, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the op with the faults that this process asks for, itself where there are none."""
    mine = [fault for fault in injected() if fault.op == contract.op]
    return with_faults(contract, function, mine) if mine else function


def with_faults(
    contract: Contract, function: Callable[..., Any], faults: Iterable[Fault]
) -> Callable[..., Any]:
    """Return the checked op `function` with these faults put around it."""
    mine = tuple(faults)
    written = [arg.name for arg in contract.args if arg.role in ("out", "inout")]

    @functools.wraps(function)
    def faulty(*args: Any, **kwargs: Any) -> Any:
        arguments = contract.bind(args, kwargs)
        firing = [fault for fault in mine if _fires(fault, arguments)]
        for fault in firing:
            if fault.kind == "slow":
                time.sleep(fault.settings["ms"] / 1000)
            elif fault.kind == "memory":
                raise _out_of_memory(fault, arguments)
        result = function(**arguments)
        outputs = [arguments[name] for name in written]
        outputs += result if isinstance(result, tuple) else [result]
        for fault in firing:
            _spoil(fault, outputs)
        return result

    return faulty


def _fires(fault: Fault, arguments: Mapping[str, Any]) -> bool:
    """Tell whether this call is to be changed, and count it."""
    if not all(_matches(arguments, key, value) for key, value in fault.where.items()):
        return False
    fault.seen += 1
    if fault.seen <= fault.settings["after"]:
        return False
    if fault.kind == "memory" and _held(arguments.values()) <= fault.settings["bytes"]:
        return False
    fault.fired += 1
    return True


def _spoil(fault: Fault, outputs: Iterable[Any]) -> None:
    for tensor in outputs:
        if tensor is None or not tensor.dtype.is_floating_point:
            continue
        if fault.kind == "nan":
            tensor.fill_(float("nan"))
        elif fault.kind == "wrong":
            tensor.add_(fault.settings["add"])


def _out_of_memory(fault: Fault, arguments: Mapping[str, Any]) -> Exception:
    import torch

    # The vendor's runtime answers through torch.cuda, whose error upstream catches by this type.
    return torch.OutOfMemoryError(
        f"kunlun_adapt simulator: {fault.op}: out of memory: the call's tensors hold "
        f"{_held(arguments.values())} bytes, and {VARIABLE} allows {fault.settings['bytes']:.0f}"
    )


def _held(values: Iterable[Any]) -> int:
    return sum(v.numel() * v.element_size() for v in values if hasattr(v, "element_size"))


def _matches(arguments: Mapping[str, Any], key: str, wanted: Any) -> bool:
    name, _, part = key.partition(".")
    value = arguments[name]
    if not part:
        return bool(value == wanted)
    if value is None:
        return False
    if part == "dtype":
        return bool(dtype_name(value) == wanted)
    shape = tuple(value.shape)
    return len(shape) == len(wanted) and all(
        size in ("_", actual) for size, actual in zip(wanted, shape, strict=True)
    )

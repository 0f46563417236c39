"""What a ledger must look like to be read back: files of a run may be torn, old or not ours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, Union

Shape: TypeAlias = Union[type, tuple[type, ...], "list[Any]", "dict[str, Any]", "Each"]


@dataclass(frozen=True, slots=True)
class Each:
    """An object with any keys, whose values all have one shape."""

    shape: Any


LEDGER: Shape = {
    "schema": int,
    "run": str,
    "process": str,
    "ranks": Each(int),
    "pid": int,
    "parent": int,
    "born": (int, type(None)),
    "host": str,
    "ended": bool,
    "started": str,
    "release": str,
    "profile": str,
    "workspace": str,
    "map": str,
    "map_revision": str,
    "unverified": bool,
    "refused": str,
    "bindings": [
        {"id": str, "state": str, "required": bool, "detail": str, "kept": str, "member": str}
    ],
    "planned": int,
    "excluded": int,
    "simulator_faults": [{"fault": str, "fired": int}],
    "chosen": [{"what": str, "value": str, "why": str}],
    "operators": Each(Each(int)),
    "fallbacks": [
        {
            "operator": str,
            "tier": str,
            "calls": int,
            "refused": int,
            "reason": str,
            "call": str,
            "why": str,
            "at": str,
            "stack": [str],
        }
    ],
}


def check(value: Any, shape: Shape, place: str = "it") -> None:
    """Raise ValueError where a value has not the shape; further keys are let be."""
    if isinstance(shape, (type, tuple)):
        if type(value) not in (shape if isinstance(shape, tuple) else (shape,)):
            raise ValueError(f"{place} is {_short(value)}")
        return
    if isinstance(shape, list):
        if not isinstance(value, list):
            raise ValueError(f"{place} is {_short(value)}")
        for index, entry in enumerate(value):
            check(entry, shape[0], f"{place}[{index}]")
        return
    if not isinstance(value, Mapping):
        raise ValueError(f"{place} is {_short(value)}")
    if isinstance(shape, Each):
        for key, entry in value.items():
            check(entry, shape.shape, f"{place}.{key}")
        return
    for key, entry_shape in shape.items():
        if key not in value:
            raise ValueError(f"{place} lacks {key!r}")
        check(value[key], entry_shape, key if place == "it" else f"{place}.{key}")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}…"

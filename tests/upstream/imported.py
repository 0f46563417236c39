"""Run in a process of its own: says of each named symbol what Python sees after importing it.

Reads a JSON list of dotted paths from stdin and writes one JSON object per path to stdout. It
imports nothing of ours: what it says must not come from the code that it is compared with.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import json
import os
import sys
from typing import Any


def main() -> None:
    answers, sys.stdout = sys.stdout, sys.stderr  # upstream prints while it is imported
    said = {path: look(path) for path in json.load(sys.stdin)}
    answers.write(json.dumps(said))
    answers.flush()
    os._exit(0)  # threads that upstream has started do not end by themselves


def look(path: str) -> dict[str, Any]:
    """Import as much of the path as is a module and follow the rest by attributes."""
    parts = path.split(".")
    module: Any = None
    failure: str | None = None
    depth = 0
    for count in range(1, len(parts) + 1):
        name = ".".join(parts[:count])
        if module is not None and hasattr(module, parts[count - 1]) and count > 1:
            found = getattr(module, parts[count - 1])
            if not inspect.ismodule(found):
                break
        try:
            module = importlib.import_module(name)
            depth = count
        except ModuleNotFoundError as error:
            if error.name != name:
                failure = f"{type(error).__name__}: {error}"
            break
        except BaseException as error:
            failure = f"{type(error).__name__}: {error}"
            break
    if failure is not None:
        return {"unimportable": failure[:300]}
    return describe(module, parts[depth:])


def describe(found: Any, rest: list[str]) -> dict[str, Any]:
    owner: Any = None
    for part in rest:
        owner = found
        try:
            found = getattr(found, part)
        except AttributeError:
            fields = getattr(found, "__annotations__", {})
            return {"kind": "attribute"} if part in fields else {"absent": True}
        except BaseException as error:
            return {"unimportable": f"{type(error).__name__}: {error}"[:300]}
    static = found
    if inspect.isclass(owner):
        static = inspect.getattr_static(owner, rest[-1])
    return {"kind": kind(static, owner), "signature": signature(static)}


def kind(found: Any, owner: Any) -> str:
    if inspect.ismodule(found):
        return "module"
    if inspect.isclass(found):
        return "class"
    if isinstance(found, classmethod):
        return "classmethod"
    if isinstance(found, staticmethod):
        return "staticmethod"
    if isinstance(found, (property, functools.cached_property)):
        return "property"
    if type(found).__name__ in ("JITFunction", "Autotuner", "Heuristics"):
        return "triton_kernel"
    if hasattr(found, "cache_info"):
        return "cached_function"
    if inspect.iscoroutinefunction(found):
        return "async_function"
    if inspect.isfunction(found):
        return "method" if inspect.isclass(owner) else "function"
    return "callable" if callable(found) else "value"


def signature(found: Any) -> list[list[Any]] | None:
    if isinstance(found, (classmethod, staticmethod)):
        found = found.__func__
    if type(found).__name__ in ("JITFunction", "Autotuner", "Heuristics"):
        while not inspect.isfunction(found) and hasattr(found, "fn"):
            found = found.fn
    if not inspect.isfunction(found) and not hasattr(found, "__wrapped__"):
        return None
    try:
        parameters = inspect.signature(found).parameters.values()
    except (TypeError, ValueError):
        return None
    return [[p.name, p.kind.name.lower(), p.default is not p.empty] for p in parameters]


if __name__ == "__main__":
    main()

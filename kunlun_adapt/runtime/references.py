"""Where upstream keeps a symbol: resolving its path, finding and repairing what still holds it."""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

UPSTREAM = "sglang"
PLAIN = (bool, int, float, str, bytes, type(None))


@dataclass(frozen=True, slots=True)
class Patched:
    """A name in an upstream module that holds our object now; `original` is what it held before."""

    binding: str
    module: str
    name: str
    original: Any


def resolve(path: str) -> tuple[Any, str]:
    """Return (owner, attribute) of a dotted path, importing the longest module prefix.

    Raises ImportError or AttributeError, or whatever upstream raises when it is imported.
    """
    parts = path.split(".")
    for end in range(len(parts) - 1, 0, -1):
        name = ".".join(parts[:end])
        try:
            owner: Any = importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name and (name == error.name or name.startswith(f"{error.name}.")):
                continue
            raise
        for part in parts[end:-1]:
            owner = getattr(owner, part)
        return owner, parts[-1]
    raise ModuleNotFoundError(f"no module on the way to {path!r}")


def static(owner: Any, name: str) -> Any:
    """Return what `owner` holds under `name`, without what descriptors make of it."""
    if isinstance(owner, type) and name in owner.__dict__:
        return owner.__dict__[name]
    return getattr(owner, name)


def lookup(path: str) -> Any:
    """Return the object at a dotted path as in-tree code sees it. Raises as `resolve` does."""
    owner, name = resolve(path)
    return getattr(owner, name)


def holders(
    patched: Iterable[Patched], modules: Iterable[ModuleType] | None = None
) -> dict[str, list[str]]:
    """Return, by binding id, the names in other upstream modules that are still the original.

    The defining module's other names are left alone: there an alias is upstream's own choice. Where
    the patched name is itself an alias, only names spelled like it count, since others may hold
    the function under its own name and rightly so.
    """
    wanted = _by_identity(patched)
    found: dict[str, list[str]] = {}
    for module in _upstream_modules() if modules is None else modules:
        for name, value in list(vars(module).items()):
            for patch in wanted.get(id(value), ()):
                if module.__name__ == patch.module:
                    continue
                alias = getattr(patch.original, "__name__", patch.name) != patch.name
                if not alias or name == patch.name:
                    found.setdefault(patch.binding, []).append(f"{module.__name__}.{name}")
    return found


def tables(patched: Iterable[Patched]) -> dict[str, list[str]]:
    """Return, by binding id, the upstream tables and class attributes that hold an original.

    One level deep: the entries of module-level dictionaries, lists, sets and tuples, partial
    functions, and the attributes of classes. Whether upstream still reads them nobody can tell.
    """
    wanted = _by_identity(patched)
    found: dict[str, list[str]] = {}
    if not wanted:
        return found
    for module in _upstream_modules():
        for name, value in list(vars(module).items()):
            if isinstance(value, type) and value.__module__ != module.__name__:
                continue  # counted where it is defined
            for entry in _entries(value):
                for patch in wanted.get(id(entry), ()):
                    place = f"{module.__name__}.{name}"
                    places = found.setdefault(patch.binding, [])
                    if place not in places:
                        places.append(place)
    return found


def copies(owner: Any, name: str, old: Any) -> list[str]:
    """Return the public names in other upstream modules that look like copies of a constant."""
    if not isinstance(owner, ModuleType) or name.startswith("_"):
        return []
    return [
        f"{module.__name__}.{name}"
        for module in _upstream_modules()
        if module is not owner and name in vars(module) and vars(module)[name] is old
    ]


def repair(path: str, original: Any, new: Any) -> str | None:
    """Let the reference at `path` hold `new` where it held `original`; return what went wrong.

    It may be a name, an entry of a dictionary, list, set or tuple, a partial function, or a class
    that has the original among its bases.
    """
    try:
        owner, name = resolve(path)
        held = static(owner, name)
        changed = _with(held, original, new)
        if changed is not held:
            setattr(owner, name, changed)
        seen = static(owner, name)
    except Exception as error:  # whatever upstream raises belongs in the table
        return f"{path} cannot be repaired: {type(error).__name__}: {error}"
    if _mentions(seen, original):
        return f"{path} still holds the original after its repair"
    if not _mentions(seen, new):
        return f"{path} does not hold the original, so `repair` cannot mean it"
    return None


def since(module: ModuleType) -> Iterator[ModuleType]:
    """Yield the upstream modules whose import began after that of `module`: they may know it half.

    `sys.modules` keeps the order in which imports began; a module is in it before it runs.
    """
    for name in reversed(list(sys.modules)):
        other = sys.modules.get(name)
        if other is module:
            return
        if isinstance(other, ModuleType) and name.split(".")[0] == UPSTREAM:
            yield other


def _upstream_modules() -> Iterator[ModuleType]:
    for name, module in list(sys.modules.items()):
        if name.split(".")[0] == UPSTREAM and isinstance(module, ModuleType):
            yield module


def _by_identity(patched: Iterable[Patched]) -> dict[int, list[Patched]]:
    """Index what can be told by identity: a plain value such as True is everywhere."""
    wanted: dict[int, list[Patched]] = {}
    for patch in patched:
        if not isinstance(patch.original, PLAIN):
            wanted.setdefault(id(patch.original), []).append(patch)
    return wanted


def _entries(value: Any) -> tuple[Any, ...]:
    if isinstance(value, dict):
        return tuple(value.values())
    if isinstance(value, (list, tuple, set, frozenset)):
        return tuple(value)
    if isinstance(value, functools.partial):
        return (value.func,)
    if isinstance(value, type):
        return tuple(_plain_function(v) for v in list(vars(value).values()))
    return ()


def _plain_function(value: Any) -> Any:
    return value.__func__ if isinstance(value, (classmethod, staticmethod)) else value


def _mentions(held: Any, wanted: Any) -> bool:
    if held is wanted or _plain_function(held) is wanted:
        return True
    if isinstance(held, type):
        return any(base is wanted for base in held.__bases__)
    if type(held) is type(wanted) and isinstance(held, PLAIN):
        return bool(held == wanted)
    return any(entry is wanted for entry in _entries(held))


def _with(held: Any, original: Any, new: Any) -> Any:
    """Return `held` with the original exchanged; containers that can be are changed in place."""
    if held is original or (isinstance(held, PLAIN) and _mentions(held, original)):
        return new
    if isinstance(held, (classmethod, staticmethod)) and held.__func__ is original:
        return type(held)(new)
    if isinstance(held, functools.partial) and held.func is original:
        return functools.partial(new, *held.args, **held.keywords)
    if isinstance(held, dict):
        for key in [k for k, v in held.items() if v is original]:
            held[key] = new
    elif isinstance(held, list):
        held[:] = [new if v is original else v for v in held]
    elif isinstance(held, set) and original in held:
        held.remove(original)
        held.add(new)
    elif type(held) in (tuple, frozenset) and _mentions(held, original):
        return type(held)(new if v is original else v for v in held)
    elif isinstance(held, type) and original in held.__bases__:
        held.__bases__ = tuple(new if b is original else b for b in held.__bases__)
    return held

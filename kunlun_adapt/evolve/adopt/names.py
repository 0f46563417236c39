"""Names that a workspace takes: ids of bindings, implementation paths, upstream paths."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from kunlun_adapt.evolve.adopt.values import (
    ClassValue,
    Const,
    External,
    Function,
    ModuleValue,
    Value,
    Wrapped,
    plain,
)
from kunlun_adapt.upstream import Missing, Resolver, Symbol

_DOTTED = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)+\Z")
_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_NOT_A_SLUG = re.compile(r"[^A-Za-z0-9_.-]+")
_NOT_A_NAME = re.compile(r"[^A-Za-z0-9_]+")


def is_dotted(path: str | None) -> bool:
    """Tell whether a text is a path of at least two names that a document can hold."""
    from keyword import iskeyword

    return bool(path and _DOTTED.match(path)) and not any(map(iskeyword, (path or "").split(".")))


def slug(text: str) -> str:
    """Return a text as a document's id."""
    return _NOT_A_SLUG.sub("-", text).strip("-_.") or "binding"


def identifier(text: str) -> str:
    """Return a text as a Python identifier."""
    from keyword import iskeyword

    name = _NOT_A_NAME.sub("_", text).strip("_") or "plugin"
    name = f"_{name}" if name[0].isdigit() else name
    return f"{name}_" if iskeyword(name) else name


@dataclass(slots=True)
class Ids:
    """Hands out ids, each once."""

    taken: set[str] = field(default_factory=set)
    numbers: dict[str, int] = field(default_factory=dict)

    def take(self, text: str) -> str:
        one = base = slug(text)
        while one in self.taken:
            number = self.numbers.get(base, 2)
            self.numbers[base] = number + 1
            one = f"{base}-{number}"
        self.taken.add(one)
        return one


def kebab(target: str) -> str:
    """Return the last names of a target in the manner of the documents' ids."""
    parts = target.split(".")
    kept = parts[-2:] if len(parts) > 1 and parts[-2][:1].isupper() else parts[-1:]
    words = [_WORD.sub("-", part) for part in kept]
    return slug(re.sub("[-_]+", "-", "-".join(words)).lower())


def implementation(value: Value | None, resolver: Resolver) -> str | None:
    """Return `package.module:name` of what implements a binding, None where nothing names it."""
    if isinstance(value, External):
        return upstream_impl(value.name, resolver)
    if isinstance(value, Wrapped) and value.how in ("staticmethod", "classmethod"):
        return implementation(value.inner, resolver) or value.path
    if isinstance(value, Function) and value.bound is not None:
        # It is the object's, and the object is the first argument: the class's own is not that.
        leaf = (value.path or "").rpartition(".")[2]
        return f"{value.bound.path}.{leaf}" if value.bound.path and leaf else None
    if value is None or isinstance(value, (Const, ModuleValue)):
        return None
    return value.path


def upstream_impl(name: str, resolver: Resolver) -> str | None:
    """Return the implementation path of something outside the plugin."""
    if not is_dotted(name):
        return None
    found = resolver.resolve(name) if name.startswith("sglang.") else None
    if isinstance(found, Symbol) and found.kind != "module":
        depth = found.qualname.count(".") + 1
        parts = name.split(".")
        return (
            f"{'.'.join(parts[:-depth])}:{'.'.join(parts[-depth:])}" if depth < len(parts) else None
        )
    module, _, leaf = name.rpartition(".")
    return f"{module}:{leaf}"


def role(value: Value | None, resolver: Resolver) -> str:
    """Return what a value is: function, class, module, value or unknown."""
    if isinstance(value, Wrapped):
        return "value" if value.how == "property" else "function"
    if isinstance(value, Function):
        return "function"
    if isinstance(value, ClassValue):
        return "class"
    if isinstance(value, ModuleValue):
        return "module"
    if isinstance(value, External):
        found = resolver.resolve(value.name) if value.name.startswith("sglang.") else None
        if isinstance(found, Symbol):
            return found.kind if found.kind in ("class", "module") else _of_symbol(found)
        return "unknown"
    return "value" if plain(value)[0] else "unknown"


def _of_symbol(symbol: Symbol) -> str:
    return "value" if symbol.kind in ("constant", "attribute", "property") else "function"


def owner_is_there(target: str, resolver: Resolver) -> bool:
    """Tell whether what a target belongs to exists."""
    return not isinstance(resolver.resolve(target.rpartition(".")[0]), Missing)

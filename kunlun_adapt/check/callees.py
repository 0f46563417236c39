"""The functions of its own package that a function calls: by name, by module or on itself."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from kunlun_adapt.check.implementations import Implementation
from kunlun_adapt.check.module_names import Module, absolute

Find = Callable[[str], object]
Import = ast.Import | ast.ImportFrom


@dataclass(frozen=True, slots=True)
class Called:
    """A call: the dotted name, and which arguments are tensors, by place or by name."""

    name: str
    tensors: frozenset[int | str]


def callee(
    caller: Implementation, called: Called, imports: Mapping[str, Import], find: Find
) -> tuple[Implementation, frozenset[str]] | None:
    """Return the function that is called and which of its parameters get tensors, or None.

    `imports` are those in the caller's body. What belongs to another package is not followed.
    """
    if caller.source is None:
        return None
    package = caller.module.partition(".")[0]
    for path, bound in _paths(caller, caller.source[0], called.name.split("."), imports):
        if path.partition(":")[0].partition(".")[0] != package:
            continue
        found = find(path)
        if isinstance(found, Implementation) and found.source is not None:
            arguments = found.source[1].args
            named = [a.arg for a in (*arguments.posonlyargs, *arguments.args)][bound:]
            given = {named[t] for t in called.tensors if isinstance(t, int) and t < len(named)}
            return found, frozenset(given | {t for t in called.tensors if isinstance(t, str)})
    return None


def _paths(
    caller: Implementation, module: Module, parts: list[str], imports: Mapping[str, Import]
) -> Iterator[tuple[str, int]]:
    """Yield where a dotted name may lead, and how many parameters the call itself fills."""
    first, *rest = parts
    if first in ("self", "cls"):
        owner = caller.path.partition(":")[2].rpartition(".")[0]
        if owner and len(rest) == 1:
            yield f"{caller.module}:{owner}.{rest[0]}", 1
        return
    statement = imports.get(first) or module.names.get(first)
    if isinstance(statement, ast.ImportFrom):
        original = next((a.name for a in statement.names if (a.asname or a.name) == first), first)
        source = absolute(module, statement)
        yield f"{source}:{'.'.join([original, *rest])}", 0
        if rest:
            yield f"{'.'.join([source, original, *rest[:-1]])}:{rest[-1]}", 0
    elif isinstance(statement, ast.Import):
        for alias in statement.names:
            stands = alias.name if alias.asname else alias.name.partition(".")[0]
            if rest and first == (alias.asname or stands):
                yield f"{'.'.join([stands, *rest[:-1]])}:{rest[-1]}", 0
    else:
        yield f"{caller.module}:{'.'.join(parts)}", 0

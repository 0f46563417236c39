"""Whether a process of SGLang ever loads plugins, read off what it runs."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from weakref import WeakKeyDictionary

from kunlun_adapt.check.context import Context
from kunlun_adapt.plan import PROCESS, spelled
from kunlun_adapt.upstream import Symbol

LOADS = "load_plugins"
"""Upstream's function that runs the plugins' `register` and applies the hooks."""

STEPS = 3
"""How far calls are followed from the function that a process runs."""

_LOADING: WeakKeyDictionary[Context, dict[str, bool | None]] = WeakKeyDictionary()


def entry(context: Context, process: str) -> Symbol | None:
    """Return the function that a process runs, where the map names it."""
    key = f"{PROCESS}.{process}"
    spelling = spelled(context.map, key, context.release, context.beyond_claims)
    if spelling is None or spelling.call is None:
        return None
    found = context.facts.resolve(spelling.call)
    return found if isinstance(found, Symbol) else None


def loads_plugins(context: Context, process: str) -> bool | None:
    """Tell whether a process calls `load_plugins`; None where nobody can tell.

    The function that it runs is read, and what that calls by name in its own module: functions,
    and the constructors of classes.
    """
    known = _LOADING.setdefault(context, {})
    if process not in known:
        known[process] = _loads(context, entry(context, process))
    return known[process]


def _loads(context: Context, start: Symbol | None) -> bool | None:
    reader = context.reader
    node = reader.statement(start) if reader is not None and start is not None else None
    if reader is None or start is None or node is None:
        return None
    seen: set[str] = {start.resolved}
    level: list[tuple[Symbol, ast.AST]] = [(start, node)]
    for _ in range(STEPS):
        following: list[tuple[Symbol, ast.AST]] = []
        for symbol, body in level:
            for name in _called(symbol, body):
                if name.rpartition(".")[2] == LOADS:
                    return True
                found = reader.resolve(f"{start.module}.{name}")
                if not isinstance(found, Symbol) or found.resolved in seen:
                    continue
                seen.add(found.resolved)
                if found.kind == "class":
                    found_init = reader.resolve(f"{found.resolved}.__init__")
                    found = found_init if isinstance(found_init, Symbol) else found
                if found.module != start.module or found.kind == "class":
                    continue
                inner = reader.statement(found)
                if inner is not None:
                    following.append((found, inner))
        level = following
    return False


def _called(symbol: Symbol, body: ast.AST) -> Iterator[str]:
    """Yield the names that a body calls: bare ones, dotted ones, and methods of its own class."""
    owner = symbol.qualname.rpartition(".")[0]
    for call in ast.walk(body):
        if not isinstance(call, ast.Call):
            continue
        if isinstance(call.func, ast.Name):
            yield call.func.id
        elif isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name):
            base = call.func.value.id
            yield f"{owner if base in ('self', 'cls') and owner else base}.{call.func.attr}"
    # A class that stands as a default is what the process makes: `manager=DetokenizerManager`.
    if isinstance(body, ast.FunctionDef | ast.AsyncFunctionDef):
        defaults = [*body.args.defaults, *body.args.kw_defaults]
        yield from (d.id for d in defaults if isinstance(d, ast.Name))
